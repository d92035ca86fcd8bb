from __future__ import annotations

from towline.container.mounts import merge_mounts
from towline.container.pyxis import srun_options
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


def test_a_later_group_wins_for_the_same_target() -> None:
    merged = merge_mounts(mounts("/old:/data", "/lustre:/lustre"), mounts("/new:/data/"))
    assert [(mount.source, mount.target) for mount in merged] == [("/new", "/data/"), ("/lustre", "/lustre")]


def test_a_mount_is_not_hidden_by_one_above_it() -> None:
    merged = merge_mounts(mounts("/set:/data/set"), mounts("/all:/data"))
    assert [mount.target for mount in merged] == ["/data", "/data/set"]
