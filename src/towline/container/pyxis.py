"""The options that Pyxis adds to `srun`."""

from __future__ import annotations

from collections.abc import Sequence

from towline.container.reference import pyxis_form
from towline.models.image import Image
from towline.models.spec import Mount


def srun_options(
    image: Image, mounts: Sequence[Mount], *, workdir: str | None = None, mount_home: bool = False
) -> tuple[str, ...]:
    """The options that run a step inside the image.

    Whether the home directory is mounted is always said, for the default is the site's (Enroot's
    ENROOT_MOUNT_HOME), and a container must not see another home on another cluster.
    """
    listed = ",".join(_mount_text(mount) for mount in mounts)
    return (
        f"--container-image={pyxis_form(image)}",
        *((f"--container-mounts={listed}",) if mounts else ()),
        *((f"--container-workdir={workdir}",) if workdir else ()),
        "--container-mount-home" if mount_home else "--no-container-mount-home",
    )


def _mount_text(mount: Mount) -> str:
    flags = ":ro" if mount.mode == "ro" else ""
    return f"{mount.source}:{mount.target}{flags}"
