"""What images are called in the cache, and what a login host says of them."""

from __future__ import annotations

import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from towline.container.cache import Nodes, check_name, find_call, image_file, name_of, parse_found, stem_of
from towline.models.image import Image

DIGEST = "sha256:" + "0123456789abcdef" * 4
ANSWER = """@fact images
>machine x86_64
>arch x86_64
>file a+1+x86_64+111111111111 1000 10 500
>note a+1+x86_64+111111111111 image=r/a:1
>note a+1+x86_64+111111111111 size=10
>file a+1+x86_64+222222222222 1000 20 600
>note a+1+x86_64+222222222222 size=20
>file a+1+x86_64+333333333333 1000 20 700
>note a+1+x86_64+333333333333 size=21
>file a+1+x86_64+444444444444 1001 20 800
>note a+1+x86_64+444444444444 size=20
>file a+1+aarch64+555555555555 1000 20 900
>note a+1+aarch64+555555555555 size=20
>uid 1000
@end
"""


@pytest.mark.parametrize(
    ("mode", "user", "image", "counts"),
    [
        ("-rw-r--r--", "ada", "r/a:1", True),
        ("-rw-r-----", "ada", "r/a:1", True),
        ("-rw-r--r--", "eve", "r/a:1", False),
        ("-rw-rw-r--", "ada", "r/a:1", False),
        ("-rw-r--rw-", "ada", "r/a:1", False),
        ("-rw-r--r--", "ada", "r/other:1", False),
        ("", "ada", "r/a:1", False),
    ],
)
def test_whose_images_count_in_a_shared_cache(mode: str, user: str, image: str, counts: bool) -> None:
    name = "a+1+x86_64+111111111111"
    text = f"@fact images\n>arch x86_64\n>file {name} 1001 10 500 {mode} {user}\n>note {name} image={image}\n"
    found = parse_found(f"{text}>note {name} size=10\n>uid 1000\n@end\n")
    assert (found.cached("x86_64", "", ("ada",), "r/a:1") is not None) == counts
    assert found.cached("x86_64") is None


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("ubuntu", "nvcr.io/ubuntu"),
        ("ubuntu:1", "ubuntu:2"),
        ("a/b:1", "a.b:1"),
        ("a/b", "a_b"),
        ("host:5000/x", "host:5001/x"),
        ("host.x/5000/x", "host.x:5000/x"),
        ("me@r#x", "you@r#x"),
        (f"x@{DIGEST}", "x"),
        (f"x:1@{DIGEST}", f"x:2@{DIGEST}"),
        ("a/" + "x" * 120, "a/" + "x" * 121),
    ],
)
def test_other_images_have_other_names(one: str, other: str) -> None:
    names = {name_of(Image.parse(text), "x86_64", DIGEST) for text in (one, other)}
    assert len(names) == 2


@pytest.mark.parametrize(
    ("one", "other"),
    [("ubuntu", "docker.io/library/ubuntu:latest"), ("nvcr.io/x", "nvcr.io#x"), ("docker://r.io/x:1", "r.io/x:1")],
)
def test_one_image_in_two_spellings_is_one_file_but_for_its_tag(one: str, other: str) -> None:
    first, second = (Image.parse(text) for text in (one, other))
    if first.tag == second.tag:
        assert stem_of(first) == stem_of(second)


def test_a_name_tells_architecture_and_digest() -> None:
    image = Image.parse("nvcr.io/nvidia/pytorch:24.07-py3")
    name = name_of(image, "aarch64", DIGEST)
    assert name.startswith("nvcr.io+nvidia+pytorch+24.07-py3+")
    assert name.endswith("+aarch64+0123456789ab")
    assert name_of(image, "x86_64").endswith("+x86_64+unknown")
    assert check_name(name) == name


@given(st.text(max_size=40))
def test_any_reference_has_a_name_that_can_stand_anywhere(text: str) -> None:
    try:
        image = Image.parse(text)
    except ValueError:
        return
    if not image.is_file:
        assert check_name(name_of(image, "x86_64"))
        assert "/" not in name_of(image, "x86_64")


@pytest.mark.parametrize("name", ["", "../x", "a/b", ".x", "a b", "-"])
def test_other_names_are_refused(name: str) -> None:
    if name != "-":
        with pytest.raises(ValueError, match="not the name"):
            check_name(name)


def test_only_what_is_whole_and_ones_own_is_taken_from_the_cache() -> None:
    found = parse_found(ANSWER)
    newest = found.cached("x86_64")
    assert newest
    assert newest.name.endswith("222222222222")  # 333 has another size than when it was made, 444 is not ours
    older = found.cached("x86_64", "sha256:111111111111" + "0" * 52)
    assert older
    assert older.notes["image"] == "r/a:1"
    assert found.cached("x86_64", DIGEST) is None
    assert found.cached("ppc64le") is None


def test_an_answer_that_broke_off_is_none() -> None:
    with pytest.raises(ValueError, match="broke off"):
        parse_found(ANSWER.replace("@end\n", ""))


def test_the_job_reads_what_it_is_to_make() -> None:
    image = Image.parse("$oauthtoken@nvcr.io#nvidia/x:1")
    text = image_file(image, "n+x86_64+1", "x86_64", DIGEST).decode()
    done = subprocess.run(
        ["sh", "-c", f'{text}printf "%s|%s|%s|%s" "$image_uri" "$image_arch" "$image_name" "$image_notes"'],
        capture_output=True,
        text=True,
        check=True,
    )
    notes = f"image=nvcr.io/nvidia/x:1\narch=x86_64\ndigest={DIGEST}\n"
    assert done.stdout == f"docker://$oauthtoken@nvcr.io#nvidia/x:1|x86_64|n+x86_64+1|{notes}"


def test_files_are_not_looked_for() -> None:
    with pytest.raises(ValueError, match="is a file"):
        find_call("/c", Image.parse("/x.sqsh"), Nodes(), ask=True)
