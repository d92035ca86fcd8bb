"""`Container`: how a job's container is set up, beside its image, its mounts and where it begins."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import AfterValidator

from towline.models.fields import Model

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")


def _container_name(name: str) -> str:
    if not _NAME.fullmatch(name):
        raise ValueError(f"{name!r} is not a name for a container; use letters, digits and _.-, at most 64")
    return name


class Container(Model):
    """A job's container; what is not given is as the site has it.

    Attributes:
        writable: whether its file system can be written; what is written there is gone with it.
        remap_root: whether the command is root in the container, with no more rights outside of it than before.
        entrypoint: whether the image's entrypoint is run.
        name: keeps the container under this name as long as the job has its nodes, so that another step of the job
            (`srun --container-name`) finds what the command wrote into it. It never outlives the job, nor is it
            shared with another one.
    """

    writable: bool | None = None
    remap_root: bool | None = None
    entrypoint: bool | None = None
    name: Annotated[str, AfterValidator(_container_name)] | None = None
