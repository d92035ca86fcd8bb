"""What a poll does for a job that cannot go on by itself, when the cluster is away in that moment."""

from __future__ import annotations

import asyncio
from pathlib import Path

from tests.unit.engine.records import SPEC, record
from tests.unit.engine.simulated import PROFILE
from towline.engine.healing.going_on import go_on
from towline.engine.session import Session
from towline.engine.store import Store
from towline.engine.watching.verdict import Evidence
from towline.models.errors import Unreachable
from towline.models.job import Attempt, JobState
from towline.remote.base import Operation, Outcome
from towline.remote.memory import InMemory
from towline.slurm.poll import AttemptFiles


def away(_operation: Operation) -> Outcome:
    raise Unreachable("no login host could be reached")


def test_a_held_job_that_cannot_be_released_now_is_left_to_the_next_poll(tmp_path: Path) -> None:
    """An error here would lose what the poll has learnt of all other jobs."""
    session = Session(PROFILE, InMemory(away), Store(tmp_path))
    held = record(state=JobState.PENDING, attempts=(Attempt(slurm_id="7", reason="launch failed requeued held"),))
    session.store.intend(held, SPEC)
    assert asyncio.run(go_on(session, held, held, Evidence(AttemptFiles(present=True)), None)) == held
    session.store.close()
