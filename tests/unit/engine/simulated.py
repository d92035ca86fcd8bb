"""Time that passes at once, and a cluster whose jobs begin and end at given moments of it."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable, Coroutine, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import pytest

from towline.config.profile import ClusterProfile
from towline.engine.session import Session
from towline.engine.store import Store
from towline.engine.watching import lease, observation, poller, waiting
from towline.models.job import Attempt, JobRecord, JobState
from towline.remote.base import Ending, Operation, Outcome
from towline.remote.memory import InMemory

T = TypeVar("T")
START = 1_700_000_000.0
PROFILE = ClusterProfile(name="lab", hosts=("login",), root="/lustre/me")


class _Selector(selectors.DefaultSelector):
    """Waits by moving the clock."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        self.now += max(timeout or 0.0, 0.0)
        return super().select(0)


class Clock:
    """A clock that an event loop of its own moves; it stands in for the modules' own one."""

    def __init__(self) -> None:
        self.selector = _Selector()
        self.loop = asyncio.SelectorEventLoop(self.selector)
        self.loop.time = lambda: self.selector.now  # pyright: ignore[reportAttributeAccessIssue]

    def time(self) -> float:
        return START + self.selector.now

    monotonic = time

    @property
    def now(self) -> float:
        """Seconds since the beginning."""
        return self.selector.now

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return self.loop.run_until_complete(work)


@contextmanager
def simulated_time(monkeypatch: pytest.MonkeyPatch) -> Generator[Clock]:
    """The modules that look at clocks get this one."""
    clock = Clock()
    for module in (lease, observation, poller, waiting):
        monkeypatch.setattr(module, "time", clock)
    yield clock
    clock.loop.close()


@dataclass
class Life:
    """When a job begins and ends, in seconds since the beginning; None for never."""

    begins: float | None = None
    ends: float | None = None


@dataclass
class Cluster:
    """Answers polls; jobs are known by their Slurm ids.

    Attributes:
        clock: the time.
        lives: Slurm id → what becomes of the job.
        queries: when squeue or sacct was called.
        polls: when a script with queries ran.
        looks: when a script that only looked at files ran.
        failing: whether the cluster cannot be reached at that time.
        squeue_says: what squeue prints as an error at that time.
    """

    clock: Clock
    lives: dict[str, Life] = field(default_factory=dict[str, Life])
    queries: list[float] = field(default_factory=list[float])
    polls: list[float] = field(default_factory=list[float])
    looks: list[float] = field(default_factory=list[float])
    failing: Callable[[float], bool] = lambda _now: False
    squeue_says: Callable[[float], str] = lambda _now: ""

    def answer(self, operation: Operation) -> Outcome:
        now = self.clock.now
        if self.failing(now):
            return Outcome(Ending.NOT_STARTED, detail="no route")
        queries, jobs = (text.splitlines() for text in operation.args[3:5])
        (self.polls if queries else self.looks).append(now)
        parts = [f"@now {int(self.clock.time())}", *map(self._query, queries), *map(self._files, jobs), "@end\n"]
        return Outcome(Ending.DONE, 0, "\n".join(filter(None, parts)).encode())

    def _query(self, line: str) -> str:
        self.queries.append(self.clock.now)
        _, ids, *_ = line.split()
        if error := self.squeue_says(self.clock.now):
            return f"@query 1 squeue - {ids}\n!{error}"
        rows = [f">{each}|{self._word(each)}|1|{self._time(each)}|N/A|1|node1|Priority" for each in ids.split(",")]
        over = [each for each in ids.split(",") if self._word(each) == "COMPLETED"]
        if over:
            self.queries.append(self.clock.now)
            accounted = "\n".join(f">{each}|COMPLETED|0:0|1|2|3|node1" for each in over)
            rows.append(f"@query 0 sacct - {','.join(over)}\n{accounted}")
        return "\n".join([f"@query 0 squeue - {ids}", *rows])

    def _files(self, line: str) -> str:
        job, attempt, task, *_ = line.split()
        slurm = str(int(job[1:]))
        head = f"@job {job} {attempt} {task} yes no 1 no no"
        begun = f"\n@file {job} {attempt} {task} start\n>slurm_id={slurm}" if self._word(slurm) != "PENDING" else ""
        end = f"\n@file {job} {attempt} {task} end\n>code=0\n>verdict=done" if self._word(slurm) == "COMPLETED" else ""
        return head + begun + end

    def _word(self, slurm: str) -> str:
        life, now = self.lives[slurm], self.clock.now
        if life.ends is not None and now >= life.ends:
            return "COMPLETED"
        return "RUNNING" if life.begins is not None and now >= life.begins else "PENDING"

    def _time(self, slurm: str) -> str:
        begins = self.lives[slurm].begins
        return str(int(START + begins)) if begins is not None else "N/A"


def process(cluster: Cluster, state: Path, profile: ClusterProfile = PROFILE) -> Session:
    """One of several processes that share a state directory."""
    return Session(profile, InMemory(cluster.answer), Store(state))


def submitted(slurm: int, created: float = START) -> JobRecord:
    """A job that Slurm has just got."""
    job = f"a{slurm:08d}"
    attempts = (Attempt(slurm_id=str(slurm)),)
    return JobRecord(job, "train", "lab", JobState.PENDING, f"/lustre/jobs/{job}", created, attempts)
