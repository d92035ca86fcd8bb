"""Commands inside a running job, when the connection breaks."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.unit.engine.records import record
from tests.unit.engine.simulated import PROFILE
from towline.engine.inside.entering import Place, run_inside
from towline.engine.session import Session
from towline.engine.store import Store
from towline.models.errors import OutcomeUnknown
from towline.models.job import Attempt, JobState
from towline.remote.base import Ending, Operation, Outcome
from towline.remote.memory import InMemory


def test_a_command_whose_connection_broke_is_not_to_be_run_again_without_a_look(tmp_path: Path) -> None:
    """It is no question that can be asked twice."""

    def answer(operation: Operation) -> Outcome:
        if operation.name == "inside" and not operation.files:
            return Outcome(Ending.UNKNOWN, host="login1", detail="cut")
        return Outcome(Ending.DONE, 0, b"/lustre/job/inside/x/run\n", host="login1")

    running = record(state=JobState.RUNNING, attempts=(Attempt(slurm_id="7"),))
    session = Session(PROFILE, InMemory(answer), Store(tmp_path))
    with pytest.raises(OutcomeUnknown) as raised:
        asyncio.run(run_inside(session, running, ["mv", "a", "b"], Place()))
    assert "look at that before you run it again" in raised.value.fix
    session.store.close()
