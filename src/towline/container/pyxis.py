"""The options that Pyxis adds to `srun`."""

from __future__ import annotations

from collections.abc import Sequence

from towline.container.reference import pyxis_form
from towline.models.container import Container
from towline.models.image import Image
from towline.models.spec import Mount

_SWITCHES = {
    "writable": ("--container-writable", "--container-readonly"),
    "remap_root": ("--container-remap-root", "--no-container-remap-root"),
    "entrypoint": ("--container-entrypoint", "--no-container-entrypoint"),
}


def srun_options(
    image: Image,
    mounts: Sequence[Mount],
    *,
    workdir: str | None = None,
    mount_home: bool = False,
    container: Container | None = None,
) -> tuple[str, ...]:
    """The options that run a step inside the image.

    Whether the home directory is mounted is always said, for the default is the site's (Enroot's
    ENROOT_MOUNT_HOME), and a container must not see another home on another cluster. A name is as the job gives it:
    `launch` adds what makes it the job's own.
    """
    wanted = container or Container()
    switches = [words[0] if value else words[1] for words, value in _chosen(wanted)]
    listed = ",".join(_mount_text(mount) for mount in mounts)
    return (
        f"--container-image={pyxis_form(image)}",
        *((f"--container-mounts={listed}",) if mounts else ()),
        *((f"--container-workdir={workdir}",) if workdir else ()),
        "--container-mount-home" if mount_home else "--no-container-mount-home",
        *switches,
        *((f"--container-name={wanted.name}",) if wanted.name else ()),
    )


def _chosen(wanted: Container) -> list[tuple[tuple[str, str], bool]]:
    values = {"writable": wanted.writable, "remap_root": wanted.remap_root, "entrypoint": wanted.entrypoint}
    return [(_SWITCHES[name], value) for name, value in values.items() if value is not None]


def _mount_text(mount: Mount) -> str:
    flags = ":ro" if mount.mode == "ro" else ""
    return f"{mount.source}:{mount.target}{flags}"
