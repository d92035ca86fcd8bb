"""Reaching into a running job: a command beside one of its ranks, and what its GPUs do. Command lines and answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from towline.slurm.calls import Call
from towline.slurm.scripts import script

GPU_FIELDS = (
    "index",
    "name",
    "utilization.gpu",
    "memory.used",
    "memory.total",
    "temperature.gpu",
    "power.draw",
)
"""What nvidia-smi(1) is asked for; of what it does not know it says `[N/A]`."""


@dataclass(frozen=True)
class Place:
    """Which rank of a job; the lowest that runs when nothing is said.

    Attributes:
        role: of this role.
        rank: its number.
        node: the node that it runs on.
        secrets: whether the command gets the job's secrets, as the rank's own command did.
    """

    role: str = ""
    rank: int | None = None
    node: str = ""
    secrets: bool = False


@dataclass(frozen=True)
class GpuReading:
    """What one GPU does.

    Attributes:
        node: the node it is in.
        index: its number there, as the job sees it.
        name: its model.
        utilization: per cent of the time that it was busy.
        memory_used, memory_total: MiB.
        temperature: degrees Celsius.
        power: watts.
    Numbers that the driver does not know are None.
    """

    node: str
    index: str
    name: str
    utilization: float | None
    memory_used: float | None
    memory_total: float | None
    temperature: float | None
    power: float | None


def inside_call(
    directory: str,
    task: int | None,
    slurm_id: str,
    place: Place,
    name: str,
    files: Mapping[str, bytes],
    setup: str = "",
) -> Call:
    """Prepare that a command runs beside a rank, by the script whose path comes back.

    Args:
        directory: the job directory.
        task: the array's task that it is about.
        slurm_id: Slurm's id of the job.
        place: which rank.
        name: of a directory for this call alone.
        files: from `launch.inside.files_inside`.
        setup: the profile's shell line.
    """
    words = ("" if task is None else str(task), slurm_id, place.role, "" if place.rank is None else str(place.rank))
    sent = {**files, **({"setup": f"{setup}\n".encode()} if setup.strip() else {})}
    return Call("inside", script("inside"), (directory, *words, place.node, name), sent)


def gpus_call(slurm_id: str, directory: str, setup: str = "") -> Call:
    """Ask every node of a running job for its GPUs; read the answer with `parse_gpus`."""
    sent = {"setup": f"{setup}\n".encode()} if setup.strip() else {}
    return Call("gpus", script("gpus"), (slurm_id, ",".join(GPU_FIELDS), directory), sent, repeats=True)


def parse_gpus(text: str) -> tuple[GpuReading, ...]:
    """Read lines `node, index, name, …`, by node and index; other lines are passed over."""
    found: list[GpuReading] = []
    for line in text.splitlines():
        words = [word.strip() for word in line.split(",")]
        if len(words) == len(GPU_FIELDS) + 1:
            node, index, name, *numbers = words
            busy, used, total, degrees, watts = map(_number, numbers)
            found.append(GpuReading(node, index, name, busy, used, total, degrees, watts))
    return tuple(sorted(found, key=lambda each: (each.node, _number(each.index) or 0)))


def _number(text: str) -> float | None:
    try:
        return float(text.split()[0])
    except (ValueError, IndexError):
        return None
