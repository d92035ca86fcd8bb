"""The next attempt from a login host: under the budget that the files of the earlier ones leave."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from tests.unit.slurm.stubs import Ran, Slurm
from towline.launch.records import Decision, decision_record
from towline.slurm.calls import Submission, again_call
from towline.slurm.submission import ScriptExit, SubmitAnswer, parse_submission

JOB_ID = "k3q9p0abc"


class Desk:
    """A job of which attempts have ended, and the means to submit the next one."""

    def __init__(self, home: Path) -> None:
        self.slurm, self.home = Slurm(home), home
        self.job = home / "root" / "jobs" / JOB_ID
        for name in ("script", "attempts", "slurm-logs", "results"):
            (self.job / name).mkdir(parents=True)
        (self.job / "script" / "batch").write_text("#!/bin/sh\n")

    def began(self, number: int) -> None:
        """An attempt began, and found the newest checkpoint that is there now."""
        attempt = self.job / "attempts" / str(number)
        attempt.mkdir(exist_ok=True)
        (attempt / "start").write_text("slurm_id=7\n")
        (attempt / "checkpoint").write_text(f"{self.newest()}\n")

    def newest(self) -> str:
        found = sorted((int(path.stat().st_mtime), path.stat().st_size, path.name) for path in self.results())
        return " ".join(str(word) for word in found[-1]) if found else ""

    def results(self) -> list[Path]:
        return list((self.job / "results").glob("*.pt"))

    def saved(self, name: str, at: int) -> None:
        """The command wrote a checkpoint then."""
        path = self.job / "results" / name
        path.write_text("x")
        os.utime(path, (at, at))

    def again(self, number: int, cause: str, checkpoints: str = "*.pt") -> SubmitAnswer:
        """Submit that attempt after an end that only Slurm has seen."""
        submission = Submission(
            str(self.home / "root"), JOB_ID, number, f"train-{JOB_ID}-a{number}", ("sbatch", "--parsable"), time.time()
        )
        end = {"class": cause, "retries": "10", "patience": "3", "checkpoints": checkpoints}
        ran: Ran = self.slurm.run(again_call(submission, end), self.home / f"call{number}")
        return parse_submission(ran.code, ran.out, ran.err)

    def decision(self, number: int) -> Decision:
        lines = (self.job / "attempts" / str(number) / "decision").read_text().splitlines()
        found = decision_record(dict(line.split("=", 1) for line in lines))
        assert found is not None
        return found


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


@pytest.mark.parametrize("cause", ["time", "ambiguous"])
def test_a_job_that_was_killed_at_each_end_goes_on_while_its_checkpoints_grow(desk: Desk, cause: str) -> None:
    """A command that makes nothing of TERM leaves its supervisor no time to write down how the attempt went."""
    for number in range(1, 7):
        desk.began(number)
        desk.saved(f"{number}.pt", at=1000 + number)
        assert desk.again(number + 1, cause).exit is ScriptExit.OK
        assert desk.decision(number).progress


@pytest.mark.parametrize("cause", ["time", "ambiguous"])
def test_a_job_that_was_killed_without_a_newer_checkpoint_is_given_up(desk: Desk, cause: str) -> None:
    desk.saved("0.pt", at=1000)
    for number in range(1, 4):
        desk.began(number)
        assert desk.again(number + 1, cause).exit is ScriptExit.OK
    desk.began(4)
    answer = desk.again(5, cause)
    assert (answer.exit, answer.why) == (ScriptExit.SPENT, "it made no progress in 4 starts in a row")


def test_checkpoints_of_earlier_attempts_are_no_progress_of_one_that_never_looked(desk: Desk) -> None:
    desk.saved("0.pt", at=1000)
    (desk.job / "attempts" / "1").mkdir()
    assert desk.again(2, "ambiguous").exit is ScriptExit.OK
    assert not desk.decision(1).progress


def test_a_job_without_checkpoints_says_nothing_of_its_progress(desk: Desk) -> None:
    desk.began(1)
    assert desk.again(2, "ambiguous", checkpoints="").exit is ScriptExit.OK
    assert not desk.decision(1).progress
