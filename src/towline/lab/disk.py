"""/lustre: a file system of limited size in a sparse file, so that a full disk is real."""

from __future__ import annotations

import os
from pathlib import Path

from towline.lab import process
from towline.lab.layout import USERS, Layout

MOUNT_POINTS = (Path("/lustre"), Path("/etc/slurm"))
"""Folders of this machine that hosts mount over; only made, and only removed, when they were not there."""


def check(layout: Layout) -> str:
    """What is wrong with the shared disk; empty when it is mounted and every user has a folder."""
    if not os.path.ismount(layout.lustre):
        return "not mounted"
    missing = [user.name for user in USERS if not (layout.lustre / user.name).is_dir()]
    missing += [str(point) for point in MOUNT_POINTS if not point.is_dir()]
    return f"folders missing: {', '.join(missing)}" if missing else ""


def start(layout: Layout) -> None:
    """Make the disk if there is none, mount it, and give every user a folder on it."""
    layout.lustre.mkdir(parents=True, exist_ok=True)
    if not layout.lustre_image.exists():
        _format(layout)
    if not os.path.ismount(layout.lustre):
        _mount(layout)
    for user in USERS:
        folder = layout.lustre / user.name
        folder.mkdir(mode=0o700, exist_ok=True)
        os.chown(folder, user.uid, user.uid)
    layout.images.mkdir(mode=0o755, exist_ok=True)
    _make_mount_points(layout)


def stop(layout: Layout) -> None:
    """Unmount the disk, free its loop device, and remove the mount points made for it."""
    while os.path.ismount(layout.lustre):
        process.run(["umount", str(layout.lustre)])
    for device in _loop_devices(layout):
        process.run(["losetup", "--detach", device], check=False)
    record = _made_points(layout)
    for point in MOUNT_POINTS if record.exists() else ():
        if str(point) in record.read_text().splitlines() and point.is_dir() and not any(point.iterdir()):
            point.rmdir()
    record.unlink(missing_ok=True)


def _format(layout: Layout) -> None:
    half = layout.lustre_image.with_suffix(".new")
    with half.open("wb") as file:
        file.truncate(layout.disk_gib << 30)
    process.run(["mkfs.ext4", "-q", "-F", "-m", "0", "-E", "lazy_itable_init=1,lazy_journal_init=1", str(half)])
    half.rename(layout.lustre_image)


def _mount(layout: Layout) -> None:
    # One file behind two loop devices would be two caches of one disk, so a device left over is used again.
    attached = _loop_devices(layout)
    source = ["-o", "noatime", attached[0]] if attached else ["-o", "loop,noatime", str(layout.lustre_image)]
    process.run(["mount", "-t", "ext4", *source, str(layout.lustre)])


def _loop_devices(layout: Layout) -> list[str]:
    if not layout.lustre_image.exists():
        return []
    answer = process.run(["losetup", "-n", "-O", "NAME", "-j", str(layout.lustre_image)], check=False)
    return answer.stdout.split()


def _make_mount_points(layout: Layout) -> None:
    with _made_points(layout).open("a") as record:
        for point in MOUNT_POINTS:
            if not point.is_dir():
                point.mkdir(parents=True)
                record.write(f"{point}\n")


def _made_points(layout: Layout) -> Path:
    return layout.state / "mount-points-made"
