from __future__ import annotations

import pytest

from towline.container.mounts import merge_mounts
from towline.container.pyxis import srun_options
from towline.models.container import Container
from towline.models.image import Image
from towline.models.spec import Mount

PYTHON = Image.parse("/lustre/images/python.sqsh")


def mounts(*texts: str) -> tuple[Mount, ...]:
    return tuple(Mount.parse(text) for text in texts)


def test_the_least() -> None:
    assert srun_options(PYTHON, ()) == (
        "--container-image=/lustre/images/python.sqsh",
        "--no-container-mount-home",
    )


def test_everything() -> None:
    image = Image.parse("nvcr.io/nvidia/pytorch:24.07-py3")
    listed = mounts("/lustre:/lustre", "/data/set one:/data:ro")
    assert srun_options(image, listed, workdir="/my work", mount_home=True) == (
        "--container-image=nvcr.io#nvidia/pytorch:24.07-py3",
        "--container-mounts=/lustre:/lustre,/data/set one:/data:ro",
        "--container-workdir=/my work",
        "--container-mount-home",
    )


@pytest.mark.parametrize(
    ("wanted", "words"),
    [
        ({}, ()),
        ({"writable": True}, ("--container-writable",)),
        ({"writable": False}, ("--container-readonly",)),
        ({"remap_root": True}, ("--container-remap-root",)),
        ({"remap_root": False, "entrypoint": True}, ("--no-container-remap-root", "--container-entrypoint")),
        ({"entrypoint": "no", "name": "work"}, ("--no-container-entrypoint", "--container-name=work")),
    ],
)
def test_what_a_job_says_of_its_container(wanted: dict[str, object], words: tuple[str, ...]) -> None:
    found = srun_options(PYTHON, (), container=Container.model_validate(wanted))
    assert found == ("--container-image=/lustre/images/python.sqsh", "--no-container-mount-home", *words)


@pytest.mark.parametrize("name", ["", "a:exec", "-a", "a b", "$x", "a/b", "x" * 65])
def test_names_that_no_container_can_have(name: str) -> None:
    with pytest.raises(ValueError, match="not a name for a container"):
        Container(name=name)


def test_a_later_group_wins_for_the_same_target() -> None:
    merged = merge_mounts(mounts("/old:/data", "/lustre:/lustre"), mounts("/new:/data/"))
    assert [(mount.source, mount.target) for mount in merged] == [("/new", "/data/"), ("/lustre", "/lustre")]


def test_a_mount_is_not_hidden_by_one_above_it() -> None:
    merged = merge_mounts(mounts("/set:/data/set"), mounts("/all:/data"))
    assert [mount.target for mount in merged] == ["/data", "/data/set"]
