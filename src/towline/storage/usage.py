"""What lies below a root, and what of it may go."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

FRESH = 86400
"""Seconds that a snapshot of code is kept after it was last asked for: a submission may be about to use it."""


@dataclass(frozen=True)
class Item:
    """A job or a snapshot of code.

    Attributes:
        path: below the root: `jobs/ID` or `code/SNAPSHOT`.
        age: seconds since the job ended, or since it or the snapshot was last touched.
        kib: its size.
        inodes: files and directories; None where the cluster's `du` does not count them.
        over: whether the job's newest attempt wrote its end.
        snapshot: the snapshot that a job started with; empty for none.
    """

    path: str
    age: int
    kib: int = 0
    inodes: int | None = None
    over: bool = False
    snapshot: str = ""

    @property
    def name(self) -> str:
        """The job's id, or the snapshot's."""
        return self.path.partition("/")[2]

    @property
    def is_job(self) -> bool:
        """Whether it is a job."""
        return self.path.startswith("jobs/")


@dataclass(frozen=True)
class Usage:
    """What lies below a root.

    Attributes:
        items: jobs and snapshots, by path.
        alive: names of the user's jobs in the queue; None when it could not be asked.
    """

    items: tuple[Item, ...]
    alive: tuple[str, ...] | None

    def in_queue(self, job: str) -> bool:
        """Whether Slurm has the job, or cannot tell."""
        return self.alive is None or any(job in name for name in self.alive)


@dataclass(frozen=True)
class Wish:
    """What is to go.

    Attributes:
        older: seconds since a job ended, or a snapshot was asked for.
        kib: only what is at least that large.
        states: only jobs in these states, by their words; empty for all that have ended.
        kinds: `jobs`, `code` and `logs`; with `jobs`, logs go with them.
    """

    older: int
    kib: int = 0
    states: frozenset[str] = frozenset()
    kinds: frozenset[str] = field(default=frozenset({"jobs", "code"}))


def parse_usage(text: str) -> Usage:
    """Read the answer of the script `usage`.

    Raises:
        ValueError: it is not such an answer.
    """
    kib: dict[str, int] = {}
    inodes: dict[str, int] = {}
    alive: list[str] = []
    items: list[Item] = []
    lines = text.splitlines()
    for line in lines:
        kind, _, rest = line.partition(" ")
        if kind in ("kib", "inodes"):
            count, _, path = rest.partition(" ")
            (kib if kind == "kib" else inodes)[path] = int(count)
        elif kind == "alive":
            alive.append(rest)
        elif kind == "job":
            name, age, over, snapshot = rest.split()
            items.append(Item(f"jobs/{name}", int(age), over=over == "1", snapshot="" if snapshot == "-" else snapshot))
        elif kind == "code":
            name, age = rest.split()
            items.append(Item(f"code/{name}", int(age)))
    found = tuple(
        Item(each.path, each.age, kib.get(each.path, 0), inodes.get(each.path), each.over, each.snapshot)
        for each in items
    )
    return Usage(found, tuple(alive) if "whole" in lines else None)


def may_go(usage: Usage, states: Mapping[str, str], living: Collection[str], wish: Wish) -> tuple[Item, ...]:
    """What of a root nobody uses any more, and is wished to go.

    A job that another machine submitted is known here by its directory only: it has ended when it wrote so.

    Args:
        usage: what is there.
        states: the state of each job that is known here.
        living: ids of those that have not ended.
        wish: what is to go.
    """

    def ended(item: Item) -> bool:
        known = item.name in states
        return not usage.in_queue(item.name) and item.name not in living and (known or item.over)

    def wanted(item: Item) -> bool:
        state = states.get(item.name, "")
        return item.age >= wish.older and item.kib >= wish.kib and (not wish.states or state in wish.states)

    jobs = [item for item in usage.items if item.is_job and ended(item) and wanted(item)]
    gone = {item.name for item in jobs} if "jobs" in wish.kinds else set[str]()
    used = {item.snapshot for item in usage.items if item.is_job and item.name not in gone}
    code = [
        item
        for item in usage.items
        if not item.is_job and item.name not in used and item.age >= max(wish.older, FRESH) and item.kib >= wish.kib
    ]
    return (*(jobs if {"jobs", "logs"} & wish.kinds else ()), *(code if "code" in wish.kinds else ()))
