"""What lies below a root, and what of it may go."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from towline.models.removal import KINDS, USUAL

FRESH = 86400
"""Seconds that code and data are kept after they were last asked for or changed: a job may be about to use them."""
_STATES = {"done": "succeeded", "failed": "failed", "cancelled": "cancelled"}
"""The last words of an attempt (`launch.records`) in those of `JobState`."""


DATA = ("data", "staged")


@dataclass(frozen=True)
class Item:
    """Something that could go.

    Attributes:
        path: below the root: `jobs/ID`, `code/SNAPSHOT`, `data/NAME`, `staged/NAME`, a hidden name of a leftover; or
            absolute: `PLACE/imports/NAME`, and what is staged outside of the root.
        kind: one of `KINDS`, but for `logs`.
        age: seconds since the job ended, or since it was last touched.
        kib: its size.
        inodes: files and directories; None where the cluster's `du` does not count them.
        over: whether the job's newest attempt wrote its end.
        state: how the job ended, as far as its own last words tell; empty when they do not.
        snapshot: the snapshot that a job started with; empty for none.
        used: whether it is certain that somebody uses it.
    """

    path: str
    kind: str
    age: int
    kib: int = 0
    inodes: int | None = None
    over: bool = False
    state: str = ""
    snapshot: str = ""
    used: bool = False

    @property
    def name(self) -> str:
        """The job's id, or the snapshot's, or what jobs call data."""
        return self.path.rpartition("/")[2] if self.path.startswith("/") else self.path.partition("/")[2]

    @property
    def is_job(self) -> bool:
        """Whether it is a job."""
        return self.kind == "jobs"


@dataclass(frozen=True)
class Usage:
    """What lies below a root.

    Attributes:
        root: the root without symbolic links.
        items: jobs and all else, in the order of the answer.
        alive: names of the user's jobs in the queue; None when it could not be asked.
        living: jobs that may live, as the cluster sees it.
        needs: paths that they need.
        mentions: name of data → jobs whose spec or command has it in it.
    """

    root: str
    items: tuple[Item, ...]
    alive: tuple[str, ...] | None
    living: frozenset[str] = frozenset()
    needs: frozenset[str] = frozenset()
    mentions: Mapping[str, frozenset[str]] = field(default_factory=dict[str, "frozenset[str]"])

    def in_queue(self, job: str) -> bool:
        """Whether Slurm has the job, or cannot tell."""
        return self.alive is None or any(job in name for name in self.alive)

    def needed(self, item: Item) -> bool:
        """Whether a job that may live names the data, or needs it or something in it.

        That a job mounts something that the data is in (whole file systems often are) says nothing by itself.
        """
        if item.kind not in DATA:
            return False
        place = f"{item.path}/" if item.path.startswith("/") else f"{self.root}/{item.path}/"
        return any(f"{path}/".startswith(place) for path in self.needs) or not self.living.isdisjoint(
            self.mentions.get(item.name, ())
        )

    def unused_for(self, item: Item) -> int:
        """Seconds since the item was changed, or since a job that is still there named it."""
        named = self.mentions.get(item.name, frozenset[str]()) if item.kind in DATA else frozenset[str]()
        return min([item.age, *(each.age for each in self.items if each.is_job and each.name in named)])


@dataclass(frozen=True)
class Wish:
    """What is to go.

    Attributes:
        older: seconds since a job ended, or something was asked for or changed.
        kib: only what is at least that large.
        states: only jobs in these states, by their words; empty for all that have ended.
        kinds: of `KINDS`; with `jobs`, logs go with them.
    """

    older: int
    kib: int = 0
    states: frozenset[str] = frozenset()
    kinds: frozenset[str] = field(default=frozenset(USUAL))


def parse_usage(text: str) -> Usage:
    """Read the answer of the script `usage`.

    Raises:
        ValueError: it is not such an answer.
    """
    sizes: dict[str, dict[str, int]] = {"kib": {}, "inodes": {}}
    words: dict[str, list[str]] = {"alive": [], "need": [], "lives": [], "root": [""]}
    mentions: dict[str, set[str]] = {}
    items: list[Item] = []
    lines = text.splitlines()
    for line in lines:
        kind, _, rest = line.partition(" ")
        if kind in sizes:
            count, _, path = rest.partition(" ")
            sizes[kind][path] = int(count)
        elif kind == "mention":
            job, _, name = rest.partition(" ")
            mentions.setdefault(name, set()).add(job)
        elif kind in words:
            words[kind].append(rest)
        elif kind in _READERS:
            items.append(_READERS[kind](rest))
    kib, inodes = sizes["kib"], sizes["inodes"]
    found = tuple(replace(each, kib=kib.get(each.path, 0), inodes=inodes.get(each.path)) for each in items)
    alive = tuple(words["alive"]) if "whole" in lines else None
    named = {name: frozenset(jobs) for name, jobs in mentions.items()}
    return Usage(words["root"][-1], found, alive, frozenset(words["lives"]), frozenset(words["need"]), named)


def _job(rest: str) -> Item:
    name, age, verdict, _, snapshot = rest.split()
    state, own = _STATES.get(verdict, ""), "" if snapshot == "-" else snapshot
    return Item(f"jobs/{name}", "jobs", int(age), over=verdict != "-", state=state, snapshot=own)


def _code(rest: str) -> Item:
    name, age = rest.split()
    return Item(f"code/{name}", "code", int(age))


def _import(rest: str) -> Item:
    age, state, path = rest.split(" ", 2)
    return Item(path, "imports", int(age), used=state == "queued")


def _dated(kind: str, below: str = "") -> Callable[[str], Item]:
    def read(rest: str) -> Item:
        age, _, name = rest.partition(" ")
        return Item(f"{below}{name}", kind, int(age))

    return read


_READERS: Mapping[str, Callable[[str], Item]] = {
    "job": _job,
    "code": _code,
    "data": _dated("data", "data/"),
    "staged": _dated("staged", "staged/"),
    "copy": _dated("staged"),
    "import": _import,
    "left": _dated("leftovers"),
}
_LEAST = {"code": FRESH, "data": FRESH, "staged": FRESH, "leftovers": FRESH, "imports": 2 * FRESH}
"""Seconds for which each kind is kept whatever is wished; accounting may be asked for an import of two days ago."""


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
        told = item.name in states or item.over
        return told and not usage.in_queue(item.name) and item.name not in living

    def wanted(item: Item) -> bool:
        return item.age >= wish.older and item.kib >= wish.kib and (not wish.states or item.state in wish.states)

    known = (replace(item, state=states.get(item.name, item.state)) for item in usage.items if item.is_job)
    jobs = [item for item in known if ended(item) and wanted(item)]
    gone = {item.name for item in jobs} if "jobs" in wish.kinds else set[str]()
    taken = {item.snapshot for item in usage.items if item.is_job and item.name not in gone}

    def idle(item: Item) -> bool:
        old = usage.unused_for(item) >= max(wish.older, _LEAST.get(item.kind, 0)) and item.kib >= wish.kib
        return old and not item.used and item.name not in taken and not usage.needed(item)

    others = [item for item in usage.items if not item.is_job and item.kind in wish.kinds and idle(item)]
    return (*(jobs if {"jobs", "logs"} & wish.kinds else ()), *_in_order(others))


def _in_order(items: Sequence[Item]) -> list[Item]:
    return sorted(items, key=lambda item: KINDS.index(item.kind))
