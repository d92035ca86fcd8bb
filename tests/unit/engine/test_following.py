"""Following brings every byte once and in order, whatever happens to the connection and the job."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.unit.engine.records import SPEC, record
from towline.config.profile import ClusterProfile
from towline.engine.events import AttemptBegan, Event, LogChunk, LogRewritten, NoAnswer, StateChanged
from towline.engine.session import Session
from towline.engine.store import Store
from towline.engine.watching import following, pace, reading
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
    second: bytes = b""
    ended: bool = False
    polls: int = 0
    state: str = "RUNNING"
    there: bool = True
    looks: int = 0
    most: float = math.inf
    waits: int = 0
    """Looks until it begins."""

    def answer(self, operation: Operation) -> Outcome:
        if operation.name == "poll":
            self.polls += 1
            line = f"7|{self.state}|1|2|3|1|node1|None"
            head = f"@query 0 squeue - 7\n>{line}\n@job {JOB.id} 1 - yes no 1 no no\n"
            end = f"@file {JOB.id} 1 - end\n>code=1\n>verdict=failed\n" if self.state == "FAILED" else ""
            return Outcome(Ending.DONE, 0, f"{head}{end}@end\n".encode())
        self.looks += 1
        assert self.looks < self.most, "it looks again and again"
        step = self.steps.pop(0) if self.steps else b""
        if isinstance(step, Outcome):
            return step
        if isinstance(step, str):
            if step.startswith("2:"):
                self.second += step.encode()
            elif step.startswith("="):
                self.out = step[1:].encode()
            elif step == "gone":
                self.there = False
            else:
                self.state, self.ended = step, step != "RUNNING"
            step = b""
        self.out += step
        known = dict(zip(operation.args[9::2], operation.args[10::2], strict=True))
        files = {"1/main.out": self.out, **({"2/main.out": self.second} if self.second else {})}
        begun, self.waits = int(self.waits == 0), max(0, self.waits - 1)
        attempts = [f"attempt {number + 1} {begun} {int(self.ended)} 0\n" for number in range(len(files))]
        head = "".join(attempts) + "first 1\n"
        data = b""
        for name, text in list(files.items())[int(operation.args[2] or 1) - 1 :]:
            at = int(known.get(name, 0))
            begin = max(0, at - 1) if len(text) > at else at
            new = text[begin : at + 4]
            if len(text) != at and self.there:
                head += f"file {name} {len(text)} {at} {begin} {len(new)}\n"
                data += new
        return Outcome(Ending.DONE, 0, f"{head}data\n".encode() + data)


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


def test_a_job_that_begins_after_a_long_wait_is_looked_at_again_soon(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses: list[float] = []

    async def noted(seconds: float) -> None:
        pauses.append(seconds)

    monkeypatch.setattr(following.asyncio, "sleep", noted)
    follow(store, Cluster([*([b""] * 20), "COMPLETED"], state="PENDING", waits=15))
    assert pauses[14] == pace.SLOWEST_FILES, "it may wait for days"
    assert pauses[15] == pace.QUICK, "and be over in a second"


def test_the_next_attempt_comes_after_the_last_byte_of_the_one_before(store: Store) -> None:
    events = follow(store, Cluster([b"one of many looks\n", "2:x\n", b"late\n", CUT, "2:y\n", b"", b"", "COMPLETED"]))
    told = [(each.attempt, each.data) for each in events if isinstance(each, LogChunk)]
    assert b"".join(data for attempt, data in told if attempt == 1) == b"one of many looks\nlate\n"
    assert b"".join(data for attempt, data in told if attempt == 2) == b"2:x\n2:y\n"
    assert [attempt for attempt, _ in told] == sorted(attempt for attempt, _ in told)
    assert [each.number for each in events if isinstance(each, AttemptBegan)] == [2]


@pytest.mark.parametrize("anew", ["ab\n", "and something longer\n"])
def test_a_file_that_was_written_anew_is_told_from_its_start_once_that_is_sure(
    store: Store, monkeypatch: pytest.MonkeyPatch, anew: str
) -> None:
    monkeypatch.setattr(reading, "DOUBT_SECONDS", 0.0)
    events = follow(store, Cluster([b"before\n", b"", b"", f"={anew}", b"", b"", b"", b"c\n", "COMPLETED"]))
    assert log(events) == b"before\n" + anew.encode() + b"c\n"
    assert [each.name for each in events if isinstance(each, LogRewritten)] == ["1/main.out"]


@pytest.mark.parametrize(("change", "rest"), [("=ab", b"ab"), ("=0123", b""), ("=", b""), ("gone", b"")])
def test_reading_a_log_ends_though_it_is_cut_or_goes_away_meanwhile(
    store: Store, monkeypatch: pytest.MonkeyPatch, change: str, rest: bytes
) -> None:
    monkeypatch.setattr(reading, "DOUBT_SECONDS", 0.0)
    cluster = Cluster([b"0123456789", change], most=50)

    async def collect() -> list[LogChunk]:
        session = Session(PROFILE, InMemory(cluster.answer), store)
        return [event async for event in following.read_logs(session, JOB)]

    assert b"".join(chunk.data for chunk in asyncio.run(collect())) == b"0123" + rest


def test_a_host_that_sees_an_older_state_of_a_file_for_a_while_changes_nothing(store: Store) -> None:
    steps: list[bytes | Outcome | str] = [b"one\ntwo\n", b"", "=one\n", b"", "=one\ntwo\nthree\n", b"", "COMPLETED"]
    events = follow(store, Cluster(steps))
    assert log(events) == b"one\ntwo\nthree\n"
    assert not [each for each in events if isinstance(each, LogRewritten)]


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
