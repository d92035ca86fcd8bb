"""Archives of others: extracted whole and inside, or refused."""

from __future__ import annotations

import errno
import gzip
import io
import os
import random
import tarfile
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from towline.runner.archives import extract, extract_below, is_archive, stem_of
from towline.stager.problems import Problem

Member = tuple[str, str, str]
"""Kind, name, and content or goal."""
KINDS = {
    "file": tarfile.REGTYPE,
    "link": tarfile.SYMTYPE,
    "hard": tarfile.LNKTYPE,
    "folder": tarfile.DIRTYPE,
    "device": tarfile.CHRTYPE,
    "pipe": tarfile.FIFOTYPE,
}


def packed(path: Path, *members: Member) -> str:
    """An archive with exactly these members, whatever they are."""
    with tarfile.open(path, "w:gz" if path.name.endswith("gz") else "w") as tar:
        for kind, name, more in members:
            info = tarfile.TarInfo(name)
            info.type = KINDS[kind]
            if kind == "file":
                info.size = len(more.encode())
            else:
                info.linkname = more
            tar.addfile(info, io.BytesIO(more.encode()) if kind == "file" else None)
    return str(path)


def tree(folder: Path) -> dict[str, str]:
    return {str(path.relative_to(folder)): path.read_text() for path in sorted(folder.rglob("*")) if path.is_file()}


@pytest.mark.parametrize("name", ["set.tar", "set.tar.gz", "set.tgz"])
@pytest.mark.parametrize("top", ["", "set/", "./set/"])
def test_a_folder_named_like_the_archive_is_left_out(tmp_path: Path, name: str, top: str) -> None:
    archive = packed(tmp_path / name, ("file", f"{top}a", "1"), ("folder", f"{top}b", ""), ("file", f"{top}b/c", "2"))
    extract(archive, str(tmp_path / "set"))
    assert tree(tmp_path / "set") == {"a": "1", "b/c": "2"}
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(["set", name])


def test_another_folder_stays(tmp_path: Path) -> None:
    extract(packed(tmp_path / "set.tar", ("file", "train/a", "1")), str(tmp_path / "set"))
    assert tree(tmp_path / "set") == {"train/a": "1"}


def test_links_that_stay_inside_are_made(tmp_path: Path) -> None:
    members: list[Member] = [
        ("file", "a/b/x", "1"),
        ("link", "a/c", "b/x"),
        ("link", "d/e", "../a/b"),
        ("hard", "y", "a/b/x"),
        ("link", "early", "late"),
        ("file", "late", "2"),
    ]
    extract(packed(tmp_path / "set.tar", *members), str(tmp_path / "set"))
    assert (tmp_path / "set" / "d" / "e" / "x").read_text() == "1"
    assert tree(tmp_path / "set")["a/c"] == tree(tmp_path / "set")["y"] == "1"
    assert (tmp_path / "set" / "early").read_text() == "2"


REFUSED: dict[str, list[Member]] = {
    "parent": [("file", "../evil", "x")],
    "parent within": [("file", "a/../../evil", "x")],
    "absolute": [("file", "/tmp/evil", "x")],
    "absolute link": [("link", "a", "/etc/passwd")],
    "link to the parent": [("link", "a", "..")],
    "link deeper to the parent": [("link", "a/b", "../../evil")],
    "writing through a link": [("link", "a", "."), ("file", "a/evil", "x")],
    "a directory through a link": [("link", "a", "b"), ("folder", "a/c", "")],
    "a link behind a link": [("folder", "d", ""), ("link", "d/up", ".."), ("link", "out", "d/up/../..")],
    "climbing after a name": [("folder", "d", ""), ("link", "d/e", ".."), ("link", "z", "d/e/..")],
    "hard link to the outside": [("hard", "a", "../evil")],
    "hard link to an absolute path": [("hard", "a", "/etc/passwd")],
    "hard link to a link": [("file", "f", "x"), ("link", "l", "f"), ("hard", "a", "l")],
    "hard link to nothing": [("hard", "a", "b")],
    "device": [("device", "a", "")],
    "pipe": [("pipe", "a", "")],
    "a file as directory": [("file", "a", "x"), ("file", "a/b", "x")],
    "a directory as file": [("folder", "a", ""), ("file", "a", "x")],
    "a link out of the folder that is left out": [("file", "set/x", "1"), ("link", "set/up", "..")],
}


@pytest.mark.parametrize("members", REFUSED.values(), ids=REFUSED.keys())
def test_what_wants_to_leave_its_directory_is_refused_as_a_whole(tmp_path: Path, members: list[Member]) -> None:
    inside = tmp_path / "a" / "b"
    inside.mkdir(parents=True)
    archive = packed(inside / "set.tar", ("file", "set/first", "1"), *members)
    with pytest.raises(Problem) as refused:
        extract(archive, str(inside / "set"))
    assert refused.value.kind == "names"
    assert archive in refused.value.text
    assert [path.name for path in tmp_path.rglob("*")] == ["a", "b", "set.tar"]


def goes_in_circles(path: Path) -> bool:
    """Of such a link `realpath` may say anything."""
    try:
        path.stat()
    except OSError as error:
        return error.errno == errno.ELOOP
    return False


@settings(deadline=None, max_examples=200)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["file", "link", "hard", "folder"]),
            st.lists(st.sampled_from(["a", "b", "..", "."]), min_size=1, max_size=3).map("/".join),
            st.lists(st.sampled_from(["a", "b", "..", ".", ""]), min_size=1, max_size=4).map("/".join),
        ),
        max_size=6,
    )
)
def test_nothing_that_is_extracted_leads_out(members: list[Member]) -> None:
    with tempfile.TemporaryDirectory() as name:
        home = Path(name).resolve()
        (home / "in").mkdir()
        archive = packed(home / "in" / "set.tar", *members)
        target = home / "in" / "set"
        try:
            extract(archive, str(target))
        except Problem as problem:
            assert problem.kind == "names"  # noqa: PT017
        else:
            for path in target.rglob("*"):
                assert goes_in_circles(path) or f"{os.path.realpath(path)}/".startswith(f"{target}/")
        assert {path.name for path in home.iterdir()} == {"in"}
        assert {path.name for path in (home / "in").iterdir()} <= {"set", "set.tar"}


def test_a_link_of_a_file_to_itself_leaves_it(tmp_path: Path) -> None:
    archive = packed(tmp_path / "x.tar", ("file", "a", "1"), ("hard", "a", "./a"), ("file", "b", "2"))
    extract(archive, str(tmp_path / "out"))
    assert (tmp_path / "out" / "a").read_text() == "1"


@pytest.mark.parametrize("name", ["set.tar", "set.tar.gz"])
def test_what_is_cut_off_or_damaged_is_refused(tmp_path: Path, name: str) -> None:
    text = "".join(random.Random(1).choices("abcdefgh", k=3000))
    archive = Path(packed(tmp_path / name, ("file", "a", text), ("file", "b", text), ("file", "c", "3")))
    whole = archive.read_bytes()
    cuts = (1, 100, 600, len(whole) // 2, len(whole) - 1) if name.endswith("gz") else (1, 100, 600, 3700, 4000, 7000)
    for cut in cuts:
        archive.write_bytes(whole[:cut])
        with pytest.raises(Problem) as refused:
            extract(str(archive), str(tmp_path / "set"))
        assert refused.value.kind == "damaged", cut
    for place in (20, len(whole) // 3):
        archive.write_bytes(whole[:place] + b"\xff\xff\xff\xff" + whole[place + 4 :])
        if name.endswith("gz"):
            with pytest.raises(Problem):
                extract(str(archive), str(tmp_path / "set"))
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_a_plain_archive_with_the_name_of_a_packed_one_is_read(tmp_path: Path) -> None:
    archive = packed(tmp_path / "set.tar", ("file", "a", "1"))
    Path(archive).rename(tmp_path / "set.tar.gz")
    extract(str(tmp_path / "set.tar.gz"), str(tmp_path / "set"))
    assert tree(tmp_path / "set") == {"a": "1"}
    (tmp_path / "no.tar.gz").write_bytes(gzip.compress(b"no archive"))
    with pytest.raises(Problem) as refused:
        extract(str(tmp_path / "no.tar.gz"), str(tmp_path / "no"))
    assert refused.value.kind == "damaged"


@pytest.mark.parametrize("to_parent", [False, True])
def test_archives_that_a_directory_holds_are_extracted_beside_themselves(tmp_path: Path, to_parent: bool) -> None:
    (tmp_path / "deep").mkdir()
    packed(tmp_path / "deep" / "images.tar", ("file", "images/1", "a"))
    packed(tmp_path / "labels.tgz", ("file", "l", "b"))
    assert extract_below(str(tmp_path), to_parent=to_parent) == 2
    wanted = {"deep/1": "a", "l": "b"} if to_parent else {"deep/images/1": "a", "labels/l": "b"}
    (tmp_path / "deep" / "images.tar").unlink()
    (tmp_path / "labels.tgz").unlink()
    assert tree(tmp_path) == wanted


def test_what_two_want_to_be_is_refused(tmp_path: Path) -> None:
    packed(tmp_path / "a.tar", ("file", "x", "1"))
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "y").write_text("2")
    assert extract_below(str(tmp_path)) == 1
    assert tree(tmp_path / "a") == {"x": "1", "y": "2"}
    with pytest.raises(Problem, match="there twice"):
        extract_below(str(tmp_path))


@pytest.mark.parametrize(
    ("name", "stem"),
    [
        ("a.tar.gz", "a"),
        ("a.tgz", "a"),
        ("a.tar", "a"),
        ("a.b.tar", "a.b"),
        ("a.zip", None),
        ("model.pth.tar", None),
    ],
)
def test_which_names_are_those_of_archives(name: str, stem: str | None) -> None:
    assert is_archive(name) == (stem is not None)
    assert stem_of(name) == (stem or name)
