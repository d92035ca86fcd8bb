"""Following brings every byte once and in order, whatever happens to the connection and the job."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.unit.engine.records import SPEC, record
from towline.config.profile import ClusterProfile
from towline.engine.events import Event, LogChunk, NoAnswer, StateChanged
from towline.engine.session import Session
from towline.engine.store import Store
from towline.engine.watching import following
from towline.models.errors import Unreachable
from towline.models.job import Attempt, JobRecord, JobState
from towline.remote.base import Ending, Operation, Outcome
from towline.remote.memory import InMemory

PROFILE = ClusterProfile(name="lab", hosts=("login",), root="/lustre/me")
JOB = record(state=JobState.PENDING, attempts=(Attempt(slurm_id="7"),))


@dataclass
class Cluster:
    """A job whose log grows by one step at each look; steps may also lose the connection."""

    steps: list[bytes | Outcome | str]
    out: bytes = b""
    ended: bool = False
    attempt: int = 1
    polls: int = 0
    state: str = "RUNNING"
    asked: list[int] = field(default_factory=list[int])

    def answer(self, operation: Operation) -> Outcome:
        if operation.name == "poll":
            self.polls += 1
            line = f"7|{self.state}|1|2|3|1|node1|None"
            head = f"@query 0 squeue - 7\n>{line}\n@job {JOB.id} 1 - yes no 1 no no\n"
            return Outcome(Ending.DONE, 0, f"{head}@end\n".encode())
        step = self.steps.pop(0) if self.steps else b""
        if isinstance(step, Outcome):
            return step
        if isinstance(step, str):
            self.state, self.ended = step, step != "RUNNING"
            step = b""
        self.out += step
        offset = int(operation.args[5])
        self.asked.append(offset)
        data = self.out[offset : offset + 4]
        head = f"newest {self.attempt}\nend {int(self.ended)}\nfile main.out {len(self.out)} {len(data)}\n"
        return Outcome(Ending.DONE, 0, head.encode() + data + b"file main.err -1 0\n")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = Store(tmp_path)
    opened.intend(JOB, SPEC)
    yield opened
    opened.close()


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Looks follow each other at once."""

    async def at_once(seconds: float) -> None:
        assert seconds >= 0

    monkeypatch.setattr(following.asyncio, "sleep", at_once)


def follow(store: Store, cluster: Cluster, job: JobRecord = JOB) -> list[Event]:
    async def collect() -> list[Event]:
        session = Session(PROFILE, InMemory(cluster.answer), store)
        return [event async for event in following.follow(session, job)]

    return asyncio.run(collect())


def log(events: list[Event]) -> bytes:
    return b"".join(event.data for event in events if isinstance(event, LogChunk))


CUT = Outcome(Ending.UNKNOWN, detail="cut")
AWAY = Outcome(Ending.NOT_STARTED, detail="no route")


@pytest.mark.parametrize(
    "steps",
    [
        [b"one\n", b"two\n", "COMPLETED"],
        [b"a long line that takes many looks\n", "COMPLETED"],
        [b"one\n", CUT, AWAY, b"two\n", CUT, "COMPLETED", AWAY, CUT],
        ["COMPLETED", b"what was written late\n"],
        [b"", b"", b"\x00\xff\r", "FAILED"],
    ],
)
def test_every_byte_comes_once_and_in_order(store: Store, steps: list[bytes | Outcome | str]) -> None:
    cluster = Cluster(list(steps))
    events = follow(store, cluster)
    assert log(events) == cluster.out == b"".join(step for step in steps if isinstance(step, bytes))
    last = [event for event in events if isinstance(event, StateChanged)][-1]
    assert last.record.state.ended


def test_a_job_that_had_ended_shows_its_log_and_asks_slurm_nothing(store: Store) -> None:
    ended = record(state=JobState.FAILED, attempts=(Attempt(slurm_id="7"),))
    cluster = Cluster([b"all of it\n"], ended=True)
    assert log(follow(store, cluster, ended)) == b"all of it\n"
    assert cluster.polls == 0


def test_the_scheduler_is_asked_only_when_the_files_say_so_or_its_time_has_come(store: Store) -> None:
    cluster = Cluster([*([b"x"] * 200), "COMPLETED"])
    assert len(log(follow(store, cluster))) == 200
    assert cluster.polls <= 6


def test_silence_is_told_once_each_time(store: Store) -> None:
    events = follow(store, Cluster([b"one\n", CUT, AWAY, AWAY, b"two\n", CUT, "COMPLETED"]))
    assert [event.reason for event in events if isinstance(event, NoAnswer)] == ["cut", "cut"]


def test_a_directory_that_vanishes_is_told(store: Store) -> None:
    gone = Outcome(Ending.DONE, 44)
    events = follow(store, Cluster([b"one\n", gone, gone, "COMPLETED"]))
    assert ["gone from the cluster" in event.reason for event in events if isinstance(event, NoAnswer)] == [True]


def test_following_gives_up_when_the_cluster_stays_away(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(following, "PATIENCE", 0.0)
    with pytest.raises(Unreachable):
        follow(store, Cluster([AWAY]))
