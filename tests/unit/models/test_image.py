"""References as people write them, read once."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from towline.models.image import Image

DIGEST = "sha256:" + "0123456789abcdef" * 4


@pytest.mark.parametrize(
    ("text", "image"),
    [
        ("ubuntu", Image(repository="ubuntu")),
        ("ubuntu:22.04", Image(repository="ubuntu", tag="22.04")),
        ("nvidia/cuda:12.4.1-base", Image(repository="nvidia/cuda", tag="12.4.1-base")),
        ("a/b/c/d", Image(repository="a/b/c/d")),
        ("nvcr.io/nvidia/pytorch:24.07-py3", Image(registry="nvcr.io", repository="nvidia/pytorch", tag="24.07-py3")),
        ("nvcr.io#nvidia/pytorch:24.07-py3", Image(registry="nvcr.io", repository="nvidia/pytorch", tag="24.07-py3")),
        ("docker://nvcr.io#nvidia/pytorch", Image(registry="nvcr.io", repository="nvidia/pytorch")),
        ("docker://nvcr.io/nvidia/pytorch", Image(registry="nvcr.io", repository="nvidia/pytorch")),
        ("docker://ubuntu:latest", Image(repository="ubuntu", tag="latest")),
        ("docker.io/library/ubuntu", Image(registry="docker.io", repository="library/ubuntu")),
        ("localhost/team/x:1", Image(registry="localhost", repository="team/x", tag="1")),
        ("localhost:5000/x", Image(registry="localhost:5000", repository="x")),
        ("registry:5000/team/x:v1", Image(registry="registry:5000", repository="team/x", tag="v1")),
        ("[::1]:5000/x", Image(registry="[::1]:5000", repository="x")),
        ("10.0.0.1/x", Image(registry="10.0.0.1", repository="x")),
        ("My-Registry.example.com/x", Image(registry="My-Registry.example.com", repository="x")),
        ("registry#x:1", Image(registry="registry", repository="x", tag="1")),
        ("puller@registry.lab:5001#demo:latest", Image("", "registry.lab:5001", "demo", "latest", "", "puller")),
        ("$oauthtoken@nvcr.io#nvidia/x", Image(registry="nvcr.io", repository="nvidia/x", user="$oauthtoken")),
        (f"ubuntu@{DIGEST}", Image(repository="ubuntu", digest=DIGEST)),
        (f"host:5000/x@{DIGEST}", Image(registry="host:5000", repository="x", digest=DIGEST)),
        (f"nvcr.io/x:1@{DIGEST}", Image(registry="nvcr.io", repository="x", tag="1", digest=DIGEST)),
        (f"u@nvcr.io#x@{DIGEST}", Image(registry="nvcr.io", repository="x", digest=DIGEST, user="u")),
        ("a.b/c_d/e__f/g-h/i---j", Image(registry="a.b", repository="c_d/e__f/g-h/i---j")),
        ("ubuntu:" + "t" * 128, Image(repository="ubuntu", tag="t" * 128)),
        ("x.sqsh:1", Image(repository="x.sqsh", tag="1")),
        ("/lustre/images/python.sqsh", Image(path="/lustre/images/python.sqsh")),
        ("/lustre/my images/a+b#c@d.sqsh", Image(path="/lustre/my images/a+b#c@d.sqsh")),
        ("/lustre/images/noending", Image(path="/lustre/images/noending")),
        ("./x.sqsh", Image(path="./x.sqsh")),
        ("./images/x.sqsh", Image(path="./images/x.sqsh")),
        ("/lustre/images/x.sif", Image(path="/lustre/images/x.sif")),
    ],
)
def test_accepted(text: str, image: Image) -> None:
    assert Image.parse(text) == image


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is empty"),
        ("./../x.sqsh", "'..'"),
        ("./", "directory"),
        ("../x.sqsh", "relative"),
        ("~/x.sqsh", "relative"),
        ("x.sqsh", "absolute path"),
        ("images/x.sqsh", "absolute path"),
        ("images/x.squashfs", "absolute path"),
        ("/lustre/images/", "directory"),
        ("/lustre/images/x.tar.gz", "not a squashfs file"),
        ("/lustre/../x.sqsh", "'..'"),
        ("/lustre/a,b.sqsh", "commas or colons"),
        ("/lustre/a\nb.sqsh", "control characters"),
        ("dockerd://x", "Docker daemon"),
        ("podman://x", "podman"),
        ("https://nvcr.io/x", "https"),
        ("oras://nvcr.io/x", "oras"),
        ("docker://", "not an image reference"),
        ("docker:///x", "not an image reference"),
        ("Ubuntu", "lower-case"),
        ("nvidia/CUDA", "lower-case"),
        ("nvcr.io/", "lower-case"),
        ("a//b", "lower-case"),
        ("/", "directory"),
        ("-x", "lower-case"),
        ("a b", "lower-case"),
        ("ubuntu\n", "lower-case"),
        ("ubuntu;id", "lower-case"),
        ("$(id)", "lower-case"),
        ("ubuntu:", "not a tag"),
        ("ubuntu:-x", "not a tag"),
        ("ubuntu:a b", "not a tag"),
        ("ubuntu:" + "t" * 129, "not a tag"),
        ("ubuntu@", "not a digest"),
        ("ubuntu@sha256:abc", "not a digest"),
        ("ubuntu@md5:" + "0" * 32, "not a digest"),
        ("host:port/x", "not a registry"),
        ("-a.b/x", "not a registry"),
        ("#x", "not a registry"),
        ("a b@nvcr.io#x", "not a registry user"),
        ("@nvcr.io#x", "not a registry user"),
        ("nvcr.io#x#y", "lower-case"),
        ("a" * 256, "longer than 255"),
    ],
)
def test_refused(text: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        Image.parse(text)


def test_a_path_without_a_slash_in_front_lies_below_the_root() -> None:
    assert Image.parse("./images/x.sqsh").against("/lustre/me/towline").path == "/lustre/me/towline/images/x.sqsh"
    assert Image.parse("/x.sqsh").against("/lustre/me").path == "/x.sqsh"
    assert Image.parse("ubuntu").against("/lustre/me") == Image.parse("ubuntu")


@given(st.text(max_size=30))
def test_any_text_is_read_or_refused(text: str) -> None:
    with contextlib.suppress(ValueError):
        image = Image.parse(text)
        assert bool(image.path) != bool(image.repository)
