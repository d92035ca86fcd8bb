"""The command line of Apptainer and Singularity; written after their guides, for no package of them was at hand."""

from __future__ import annotations

import pytest

from towline.container.apptainer import exec_words
from towline.models.container import Container
from towline.models.image import Image
from towline.models.parts import Mount


@pytest.mark.parametrize(
    ("image", "shown"),
    [
        ("/lustre/x.sif", "/lustre/x.sif"),
        ("/lustre/x.sqsh", "/lustre/x.sqsh"),
        ("ubuntu", "docker://docker.io/library/ubuntu:latest"),
        ("me@nvcr.io#nvidia/x:1", "docker://nvcr.io/nvidia/x:1"),
        ("host:5000/x@sha256:" + "0" * 64, "docker://host:5000/x@sha256:" + "0" * 64),
    ],
)
def test_what_it_starts_from(image: str, shown: str) -> None:
    assert exec_words("singularity", Image.parse(image), ()) == ("singularity", "exec", "--no-home", shown)


@pytest.mark.parametrize(
    ("wanted", "words"),
    [
        ({}, ("exec", "--no-home")),
        ({"writable": False, "remap_root": False, "entrypoint": False}, ("exec", "--no-home")),
        ({"writable": True}, ("exec", "--no-home", "--writable-tmpfs")),
        ({"remap_root": True}, ("exec", "--no-home", "--fakeroot")),
        ({"entrypoint": True}, ("run", "--no-home")),
    ],
)
def test_how_the_container_is_set_up(wanted: dict[str, object], words: tuple[str, ...]) -> None:
    found = exec_words("apptainer", Image(path="/x.sif"), (), container=Container.model_validate(wanted))
    assert found == ("apptainer", *words, "/x.sif")


def test_mounts_gpus_and_where_it_begins() -> None:
    mounts = (Mount.parse("/data:/data:ro"), Mount.parse("/a b:/c"))
    found = exec_words("apptainer", Image(path="/x.sif"), mounts, workdir="/w d", mount_home=True, gpus=True)
    assert found == ("apptainer", "exec", "--nv", "--bind=/data:/data:ro", "--bind=/a b:/c:rw", "--pwd=/w d", "/x.sif")
