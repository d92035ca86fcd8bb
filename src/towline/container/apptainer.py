"""The command that runs a step's program inside an image by Apptainer or Singularity, which `srun` starts.

Written after their user guides (`apptainer exec`, `singularity exec`); nothing of it has run on a real one here.
"""

from __future__ import annotations

from collections.abc import Sequence

from towline.container.reference import registry_form
from towline.models.container import Container
from towline.models.image import Image
from towline.models.spec import Mount


def exec_words(
    program: str,
    image: Image,
    mounts: Sequence[Mount],
    *,
    workdir: str | None = None,
    mount_home: bool = False,
    container: Container | None = None,
    gpus: bool = False,
) -> tuple[str, ...]:
    """The words in front of the program that runs inside the image.

    The home directory is left out unless it is asked for, as with Pyxis; here it is mounted by default. What is
    written into a container is kept in memory. A user in front of the registry has no place here: credentials
    are those of `apptainer registry login`.

    Args:
        program: `apptainer` or `singularity`.
        image: a file, squashfs or SIF, or an image of a registry, which each node pulls into its user's cache.
        mounts: parents first.
        workdir: where the program begins.
        mount_home: whether the home directory is there.
        container: how the container is set up; a name has no meaning here.
        gpus: whether NVIDIA's libraries of the node are needed inside.
    """
    wanted = container or Container()
    return (
        program,
        "run" if wanted.entrypoint else "exec",
        *(("--nv",) if gpus else ()),
        *(() if mount_home else ("--no-home",)),
        *(("--writable-tmpfs",) if wanted.writable else ()),
        *(("--fakeroot",) if wanted.remap_root else ()),
        *(f"--bind={mount.source}:{mount.target}:{mount.mode}" for mount in mounts),
        *((f"--pwd={workdir}",) if workdir else ()),
        image.path if image.is_file else f"docker://{registry_form(image)}",
    )
