"""What the lab leaves in the kernel's own trees: device nodes that stand for GPUs, and Slurm's control groups."""

from __future__ import annotations

import contextlib
import os
import stat
from pathlib import Path

from towline.lab.layout import FAKE_GPUS, NODES, Layout

_CGROUPS = Path("/sys/fs/cgroup")
_DEV_NULL = os.makedev(1, 3)


def has_cgroup_v1() -> bool:
    """Whether Slurm can confine jobs by version 1 control groups here."""
    return all((_CGROUPS / name / "tasks").exists() for name in ("memory", "freezer", "cpuset", "devices"))


def check_gpus(_layout: Layout) -> str:
    """What is wrong with the fake GPUs; empty when all are there."""
    missing = [str(path) for path in FAKE_GPUS if not path.is_char_device()]
    return f"missing: {', '.join(missing)}" if missing else ""


def start_gpus(_layout: Layout) -> None:
    """Make a device node per GPU. Slurm marks a node invalid whose GPUs are a count without device files."""
    for path in FAKE_GPUS:
        if not path.exists():
            os.mknod(path, 0o666 | stat.S_IFCHR, _DEV_NULL)
            path.chmod(0o666)


def stop_gpus(_layout: Layout) -> None:
    """Remove the device nodes."""
    for path in FAKE_GPUS:
        path.unlink(missing_ok=True)


def thaw() -> None:
    """Let go of what Slurm has suspended: a frozen process does not even die of SIGKILL (cgroups(7), freezer)."""
    for node in NODES:
        for state in (_CGROUPS / "freezer" / f"slurm_{node.name}").rglob("freezer.state"):
            with contextlib.suppress(OSError):
                state.write_text("THAWED")


def stop_cgroups(_layout: Layout) -> None:
    """Remove the groups that Slurm's daemons made for the lab's nodes; the processes in them are gone by now."""
    names = [f"slurm_{node.name}" for node in NODES]
    for group in (controller / name for controller in sorted(_CGROUPS.glob("*")) for name in names):
        for folder, _, _ in os.walk(group, topdown=False):
            with contextlib.suppress(OSError):
                os.rmdir(folder)
