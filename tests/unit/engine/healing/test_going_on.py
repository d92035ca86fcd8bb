"""What a poll does for a job that cannot go on by itself, when the cluster is away in that moment."""

from __future__ import annotations

import asyncio
from itertools import pairwise
from pathlib import Path

from tests.unit.engine.records import SPEC, record
from tests.unit.engine.simulated import PROFILE
from towline.engine.healing.going_on import go_on
from towline.engine.session import Session
from towline.engine.store import Store
from towline.engine.watching.verdict import Evidence, blocked_for_ever
from towline.models.errors import Unreachable
from towline.models.job import Attempt, JobRecord, JobState
from towline.remote.base import Ending, Operation, Outcome
from towline.remote.memory import InMemory
from towline.slurm.poll import AttemptFiles


def away(_operation: Operation) -> Outcome:
    raise Unreachable("no login host could be reached")


def released(operation: Operation) -> Outcome:
    return Outcome(Ending.DONE, 0, host=operation.name)


HELD = record(state=JobState.PENDING, attempts=(Attempt(slurm_id="7", reason="launch failed requeued held"),))


def test_a_held_job_that_was_released_is_not_called_blocked(tmp_path: Path) -> None:
    session = Session(PROFILE, InMemory(released), Store(tmp_path))
    session.store.intend(HELD, SPEC)
    found = asyncio.run(go_on(session, HELD, HELD, Evidence(AttemptFiles(present=True)), None))
    assert (found.note, blocked_for_ever(found)) == ("a node could not start it; it waits for another one", "")
    session.store.close()


def test_a_held_job_that_cannot_be_released_now_is_left_to_the_next_poll(tmp_path: Path) -> None:
    """An error here would lose what the poll has learnt of all other jobs."""
    session = Session(PROFILE, InMemory(away), Store(tmp_path))
    held = HELD
    session.store.intend(held, SPEC)
    assert asyncio.run(go_on(session, held, held, Evidence(AttemptFiles(present=True)), None)) == held
    session.store.close()


def test_a_job_that_slurm_puts_back_again_and_again_is_held_when_its_budget_is_spent(tmp_path: Path) -> None:
    """A cloud node that never boots: no script inside ever runs, and Slurm does not count."""
    asked: list[str] = []

    def answer(operation: Operation) -> Outcome:
        asked.append(operation.name)
        return Outcome(Ending.DONE, 0, host=operation.name)

    session = Session(PROFILE, InMemory(answer), Store(tmp_path))
    looks = [record(state=JobState.PENDING, attempts=(Attempt(slurm_id="7", submitted=at),)) for at in (10, 40, 70, 70)]
    session.store.intend(looks[0], SPEC.model_copy(update={"retries": 1}))
    unstarted, started = Evidence(AttemptFiles(present=True)), Evidence(AttemptFiles(present=True, start={"time": "1"}))
    notes: list[str] = []
    for before, after in pairwise(looks):
        asyncio.run(go_on(session, before, after, started, None))
        notes += [asyncio.run(go_on(session, before, after, unstarted, None)).note for _ in range(2)][:1]
    assert asked == ["pause", "pause"]  # the second is the second process that saw the same
    assert notes[0] == notes[2] == ""
    assert "Towline holds it" in notes[1]
    session.store.close()


def test_who_holds_a_job_whose_nodes_never_start_is_said_as_long_as_it_is_held(tmp_path: Path) -> None:
    """Slurm calls it held by its user, who did nothing."""
    session = Session(PROFILE, InMemory(released), Store(tmp_path))
    seen = Evidence(AttemptFiles(present=True))
    first, again, held, later = (
        record(state=JobState.PENDING, attempts=(Attempt(slurm_id="7", submitted=at, reason=reason),))
        for at, reason in ((10, ""), (40, "BeginTime"), (40, "JobHeldUser"), (90, "JobHeldUser"))
    )
    session.store.intend(first, SPEC.model_copy(update={"retries": 0}))

    def after(before: JobRecord, now: JobRecord) -> JobRecord:
        return asyncio.run(go_on(session, before, now, seen, None))

    assert after(held, held) == held  # it was its user, then
    assert "Towline holds it" in blocked_for_ever(after(first, again))
    found = after(again, held)
    assert after(found, held) == found
    assert "Towline holds it. (held by Towline) Let it go on with `towline resume`" in blocked_for_ever(found)
    assert found.note == blocked_for_ever(found).replace("(held by Towline) ", "")
    assert after(later, later) == later
    session.store.close()
