"""The lab's folder: its rooms, keys, accounts and configuration."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from towline.lab import controller, keys, slurmconf, users
from towline.lab.accounts import system_user
from towline.lab.files import holds
from towline.lab.layout import CLOUD_NODE, NODES, Layout


def check(layout: Layout) -> str:
    """What is wrong with the folder; empty when its files are those this version writes."""
    if missing := [str(room) for room in _rooms(layout) if not room.is_dir()]:
        return f"{missing[0]} is missing"
    if not (layout.run / "power" / CLOUD_NODE.name).is_fifo():
        return "the cloud node's power pipe is missing"
    stale = [name for name, (text, _) in users.rendered(layout).items() if not holds(layout.etc / name, text)]
    name = (stale or [slurmconf.outdated(layout)])[0]
    return f"{name} is not up to date" if name else ""


def start(layout: Layout) -> None:
    """Make what is missing and rewrite what is out of date; data of earlier runs stays.

    Slurm's daemons end when their configuration changes: later parts start them again with the new one, and jobs go on.
    """
    _make_rooms(layout)
    keys.write(layout)
    users.write(layout)
    if slurmconf.write(layout):
        controller.stop_daemons(layout)


def stop(layout: Layout) -> None:
    """Forget what was true only while the lab was up."""
    shutil.rmtree(layout.run, ignore_errors=True)


def purge(layout: Layout) -> None:
    """Remove the folder with everything in it."""
    shutil.rmtree(layout.root, ignore_errors=True)


def _rooms(layout: Layout) -> list[Path]:
    rooms = [layout.etc, layout.run, layout.log, layout.state, layout.keys, layout.home, layout.bin]
    rooms += [layout.etc / "plugstack.conf.d"]
    rooms += [layout.runtime / "bin", layout.runtime / "gpu-bin", layout.run / "munge", layout.run / "power"]
    rooms += [layout.state / name for name in ("slurmctld", "mysql", "munge", "faults")]
    return [*rooms, *(layout.own(node) / "spool" for node in NODES)]


def _make_rooms(layout: Layout) -> None:
    for room in _rooms(layout):
        room.mkdir(mode=0o755, parents=True, exist_ok=True)
        room.chmod(0o755)
    owners = {"slurm": [layout.log, layout.state / "slurmctld"], "mysql": [layout.state / "mysql"]}
    owners |= {"munge": [layout.run / "munge", layout.state / "munge"]}
    for owner, folders in owners.items():
        for folder in folders:
            os.chown(folder, *system_user(owner))
    (layout.state / "mysql").chmod(0o700)
    _make_power_pipe(layout)


def _make_power_pipe(layout: Layout) -> None:
    pipe = layout.run / "power" / CLOUD_NODE.name
    if not pipe.is_fifo():
        pipe.unlink(missing_ok=True)
        os.mkfifo(pipe, 0o600)
    os.chown(pipe, *system_user("slurm"))
