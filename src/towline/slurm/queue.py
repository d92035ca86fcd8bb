"""What a waiting job has in front of it (`scripts/queue.sh`)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from towline.slurm.doctor import Answer, parse_answer
from towline.slurm.look import NodesNow, parse_nodes_now
from towline.slurm.parse import parse_time

_PAIR = re.compile(r"(?:^|\s)([A-Za-z][\w/:]*)=(.*?)(?=\s[A-Za-z][\w/:]*=|$)")
_DEPENDENCY = re.compile(r"([a-z]+):(\d+)(?:_[\d*]+)?(?:\+\d+)?(?:\((\w+)\))?")


@dataclass(frozen=True)
class Reservation:
    """A reservation of nodes.

    Attributes:
        name: its name.
        start_in, end_in: seconds until it begins and ends; negative for the past.
        nodes: node names, compressed.
        flags: for example `MAINT`.
        partition: the one that it is in; empty for none.
    """

    name: str
    start_in: int
    end_in: int
    nodes: str = ""
    flags: tuple[str, ...] = ()
    partition: str = ""

    @property
    def maintenance(self) -> bool:
        """Whether it keeps nodes for a maintenance."""
        return "MAINT" in self.flags


@dataclass(frozen=True)
class Queue:
    """What was seen; None where it could not be asked.

    Attributes:
        job: fields of `scontrol show job`.
        start_in: seconds until Slurm expects to start the job; None when it does not say.
        nodes: where that would be.
        ahead: jobs of higher priority that wait in the job's partitions, the nodes they ask for, and how many are own.
        running: running jobs there, their nodes, and seconds until the walltime of the first is over (None for none).
        own: this user's running jobs, their nodes, CPUs and GPUs.
        free: nodes as they are now.
        reservations: all that are not over.
    """

    job: Mapping[str, str] = field(default_factory=dict[str, str])
    start_in: int | None = None
    nodes: str = ""
    ahead: tuple[int, int, int] | None = None
    running: tuple[int, int, int | None] | None = None
    own: tuple[int, int, int, int] | None = None
    free: tuple[NodesNow, ...] = ()
    reservations: tuple[Reservation, ...] = ()

    @property
    def dependencies(self) -> tuple[tuple[str, str, str], ...]:
        """What the job still waits for: kind, Slurm id, and what Slurm says of it (`unfulfilled`, `failed`)."""
        return tuple((kind, job, said) for kind, job, said in _DEPENDENCY.findall(self.job.get("Dependency", "")))


def parse_queue(stdout: str) -> Queue:
    """Read the answer of the queue script.

    Raises:
        ValueError: it broke off.
    """
    answer = parse_answer(stdout)
    now = answer.fact("place", "now")
    if not answer.complete or not now.isdecimal():
        raise ValueError("the cluster's answer broke off")
    return _queue(answer, int(now))


def _queue(answer: Answer, now: int) -> Queue:
    job = _pairs(_out(answer, "job"))
    start = parse_time(job.get("StartTime", ""))
    ahead, ends, own = (_numbers(_out(answer, name)) for name in ("ahead", "ends", "own"))
    return Queue(
        job=job,
        start_in=start - now if start and start > now else None,
        nodes=_named(job.get("SchedNodeList", "")),
        ahead=(ahead[0], ahead[1], ahead[2]) if len(ahead) == 3 else None,
        running=(ends[0], ends[1], ends[2] - now if len(ends) == 3 else None) if len(ends) >= 2 else None,
        own=(own[0], own[1], own[2], own[3]) if len(own) == 4 else None,
        free=tuple(found for line in _out(answer, "free").splitlines() if (found := parse_nodes_now(line))),
        reservations=tuple(
            found for line in _out(answer, "reservations").splitlines() if (found := _reservation(line, now))
        ),
    )


def _out(answer: Answer, query: str) -> str:
    reply = answer.reply(query)
    return reply.out if reply and reply.ok else ""


def _pairs(line: str) -> dict[str, str]:
    return dict(_PAIR.findall(line.strip()))


def _numbers(text: str) -> list[int]:
    return [int(part) for part in text.strip().split("|") if part.isdecimal()]


def _named(text: str) -> str:
    return "" if text in ("", "(null)", "None") else text


def _reservation(line: str, now: int) -> Reservation | None:
    found = _pairs(line)
    start, end = parse_time(found.get("StartTime", "")), parse_time(found.get("EndTime", ""))
    if "ReservationName" not in found or not start or not end or end <= now:
        return None
    flags = tuple(flag for flag in found.get("Flags", "").split(",") if flag)
    nodes, partition = _named(found.get("Nodes", "")), _named(found.get("PartitionName", ""))
    return Reservation(found["ReservationName"], start - now, end - now, nodes, flags, partition)
