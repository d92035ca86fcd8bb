"""Events: each change is in the store once, whoever saw it."""

from __future__ import annotations

import dataclasses
import multiprocessing
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.unit.engine.records import SPEC, record
from towline.engine.store import Store
from towline.models.event import EventKind, JobEvent
from towline.models.job import Attempt, JobRecord, JobState, Tasks
from towline.models.report import Reported

ID = "a00000001"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = Store(tmp_path)
    yield opened
    opened.close()


def pending(reason: str = "Priority", **changes: Any) -> JobRecord:
    attempt = Attempt(slurm_id="7", slurm_state="PENDING", reason=reason)
    return record(state=JobState.PENDING, attempts=(attempt,), **changes)


def running(number: int = 1, **changes: Any) -> JobRecord:
    earlier = tuple(Attempt(each, "7", slurm_state="NODE_FAIL") for each in range(1, number))
    return record(state=JobState.RUNNING, attempts=(*earlier, Attempt(number, "7", nodes="node1")), **changes)


def told(store: Store) -> list[str]:
    return [str(event.kind) for event in store.events("lab")]


def test_a_jobs_life_is_told_in_order(store: Store) -> None:
    store.intend(record(), SPEC)
    for known in (pending(), pending(), running(), running(2), dataclasses.replace(running(2), state=JobState.FAILED)):
        store.save(known)
    events = store.events("lab")
    assert [(event.kind.value, event.state.value, event.attempt) for event in events] == [
        ("created", "submitting", 1),
        ("attempt", "pending", 1),
        ("state", "pending", 1),
        ("waiting", "pending", 1),
        ("state", "running", 1),
        ("attempt", "running", 2),
        ("state", "failed", 2),
    ]
    assert events[5].details == {"number": 2, "slurm_id": "7", "before": "NODE_FAIL"}
    assert events[-1].details["ended"] is True
    assert [event.number for event in events] == sorted({event.number for event in events})


def test_a_job_that_is_blocked_says_so_with_the_way_out(store: Store) -> None:
    store.intend(record(), SPEC)
    store.save(pending())
    store.save(pending("DependencyNeverSatisfied"))
    waits = [event.details for event in store.events("lab") if event.kind is EventKind.WAITING]
    assert [(each["reason"], each["blocked"]) for each in waits] == [
        ("Priority", False),
        ("DependencyNeverSatisfied", True),
    ]
    assert waits[1]["way_out"]


def test_progress_and_tasks_are_told_when_they_change(store: Store) -> None:
    store.intend(record(tasks=Tasks.of("0-3")), SPEC)
    tasks = Tasks.of("0-3").with_states(
        {0: JobState.RUNNING, 1: JobState.PENDING, 2: JobState.PENDING, 3: JobState.FAILED}
    )
    for _ in range(2):
        store.save(running(tasks=tasks, progress=Reported("RUNNING", epoch=2, epochs=9, kpi={"loss": 0.5})))
    details = {event.kind.value: event.details for event in store.events("lab")}
    assert details["progress"] == {"word": "RUNNING", "epoch": 2, "epochs": 9, "kpi": {"loss": 0.5}}
    assert details["tasks"] == {"pending": 2, "running": 1, "succeeded": 0, "failed": 1, "cancelled": 0}
    assert told(store).count("progress") == told(store).count("tasks") == 1
    known = store.job(ID)
    assert known is not None
    assert known.progress == Reported("RUNNING", epoch=2, epochs=9, kpi={"loss": 0.5})


def test_an_older_look_does_not_take_back_what_a_later_one_has_shown(store: Store) -> None:
    store.intend(record(), SPEC)
    store.save(running(), seen=100.0)
    store.save(pending(), seen=99.0)
    assert told(store) == ["created", "attempt", "state"]
    known = store.job(ID)
    assert known is not None
    assert known.state is JobState.RUNNING


def test_events_are_read_from_a_number_on_and_for_some_jobs(store: Store) -> None:
    for each in (ID, "a00000002"):
        store.intend(record(each), SPEC)
    (first, second) = store.events("lab")
    assert store.events("lab", after=first.number) == (second,)
    assert store.events("lab", jobs=[ID]) == (first,)
    assert store.events("other") == ()
    store.remove([ID])
    assert store.events("lab") == (second,)
    assert store.newest_event() == second.number


def test_what_others_tell_under_a_key_is_kept_once(store: Store) -> None:
    store.intend(record(), SPEC)
    assert store.tell(record(), EventKind.HEALING, {"did": "requeue"}, key="heal-1")
    assert not store.tell(record(), EventKind.HEALING, {"did": "requeue"}, key="heal-1")
    assert told(store) == ["created", "healing"]


def _see(directory: Path) -> None:
    store = Store(directory)
    for known in (pending(), running(), dataclasses.replace(running(), state=JobState.SUCCEEDED)):
        store.save(known)
        store.tell(known, EventKind.HEALING, {}, key="once")
    store.close()


def test_processes_that_see_the_same_tell_it_once(store: Store, tmp_path: Path) -> None:
    store.intend(record(), SPEC)
    seen = [multiprocessing.get_context("spawn").Process(target=_see, args=(tmp_path,)) for _ in range(4)]
    for process in seen:
        process.start()
    for process in seen:
        process.join(60)
        assert process.exitcode == 0
    ends: list[JobEvent] = [event for event in store.events("lab") if event.state.ended]
    assert len(ends) == 1
    assert told(store).count("healing") == 1


def test_changes_of_other_processes_are_noticed(store: Store, tmp_path: Path) -> None:
    for each in (ID, "a00000002"):
        store.intend(record(each), SPEC)
    records, mark = store.changed_since("lab", 0)
    assert [each.id for each in records] == [ID, "a00000002"]
    version, other = store.version(), Store(tmp_path)
    assert store.version() == version
    other.save(running())
    other.close()
    assert store.version() != version
    changed, mark = store.changed_since("lab", mark)
    assert running() in changed
    store.remove([ID])
    store.save(dataclasses.replace(running(), id="a00000002"))
    assert [each.id for each in store.changed_since("lab", mark)[0]] == ["a00000002"]
