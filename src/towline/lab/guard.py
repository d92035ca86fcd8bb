"""What the lab must not touch: a Slurm on this machine that is not its own, another lab, a network in its way."""

from __future__ import annotations

import os
from pathlib import Path

from towline.lab import namespaces, network, process
from towline.lab.errors import LabError
from towline.lab.layout import Layout

FOREIGN_CONFIGURATIONS = tuple(
    Path(folder) / "slurm.conf" for folder in ("/etc/slurm", "/etc/slurm-llnl", "/usr/local/etc")
)
"""Where a site's slurm.conf would be; the lab's own is seen inside its hosts only."""
_DAEMONS = ("slurmctld", "slurmd", "slurmdbd", "slurmstepd")


def require_free_machine(layout: Layout) -> None:
    """Refuse to go on next to a Slurm that is not this lab's.

    Raises:
        LabError: there is one, or another lab is up; nothing has been touched.
    """
    if reasons := [*_configurations(), *_other_labs(layout), *_daemons(), *_networks()]:
        raise LabError(
            "The lab does not come up on this machine, and nothing was touched.",
            why="\n".join(reasons),
            fix="Use a machine without a Slurm of its own, e.g. a fresh virtual machine.",
        )


def _configurations() -> list[str]:
    there = [path for path in FOREIGN_CONFIGURATIONS if path.exists()]
    return [f"{path} is there and is not the lab's" for path in there]


def _other_labs(layout: Layout) -> list[str]:
    others = sorted(set(namespaces.all_holders().values()) - {str(layout.root)})
    return [f"another lab is up in {root} (`TOWLINE_LAB_DIR={root} towline lab down` takes it down)" for root in others]


def _daemons() -> list[str]:
    """Slurm's daemons in this machine's own network; the lab's are in those of its hosts."""
    here = process.namespace(os.getpid(), "net")
    running: dict[str, list[int]] = {}
    for pid in process.pids():
        if (name := process.name_of(pid)) in _DAEMONS and process.namespace(pid, "net") == here:
            running.setdefault(name, []).append(pid)
    return [f"{name} is running (pid {_some(pids)}) and is not the lab's" for name, pids in running.items()]


def _some(pids: list[int]) -> str:
    return ", ".join(str(pid) for pid in pids[:3]) + (" …" if len(pids) > 3 else "")


def _networks() -> list[str]:
    return [reason] if (reason := network.refusal()) else []
