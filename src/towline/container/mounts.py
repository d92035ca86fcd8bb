"""Which mounts a container gets, and in which order."""

from __future__ import annotations

from towline.models.spec import Mount


def merge_mounts(*groups: tuple[Mount, ...]) -> tuple[Mount, ...]:
    """The mounts of all groups, one for each target: a later group wins over an earlier one.

    Mounts are made in order, so parents come before what lies below them; else a mount of `/data` would hide
    one of `/data/set` that was made before.
    """
    by_target = {_clean(mount.target): mount for group in groups for mount in group}
    return tuple(by_target[target] for target in sorted(by_target, key=lambda target: target.count("/")))


def _clean(path: str) -> str:
    return "/" + "/".join(part for part in path.split("/") if part not in ("", "."))
