"""The next attempt from a login host: under the budget that the files of the earlier ones leave."""

from __future__ import annotations

import os
import shutil
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


def delivery(desk: Desk, *, ended: bool) -> Path:
    """The job that waits for the first attempt, to take its results away."""
    own = desk.job / "outputs" / "imports" / "all"
    (own / "attempts" / "1").mkdir(parents=True)
    (own / "script").mkdir()
    (own / "script" / "batch-1").write_text("#!/bin/sh\n#SBATCH --job-name=towline-deliver-1-a1\n")
    (own / "attempts" / "1" / "submit").write_text("77\n")
    if ended:
        (own / "attempts" / "1" / "claim").write_text("77\n")
        (own / "attempts" / "1" / "end").write_text("code=1\nstage=not-done\n")
    return own


def test_results_of_a_job_that_goes_on_under_another_id_are_taken_away_after_that(desk: Desk) -> None:
    own = delivery(desk, ended=True)
    (desk.job / "secrets").write_text("export ACCESS_KEY='x'\n")
    desk.began(1)
    answer = desk.again(2, "node", "")
    assert answer.slurm
    submitted = desk.slurm.calls("sbatch")
    assert [f"--dependency=afterany:{answer.slurm.id} {own}/script/batch-1" in line for line in submitted] == [
        False,
        True,
    ]
    (waiting,) = [job for job in desk.slurm.jobs if job != int(answer.slurm.id)]
    assert (own / "attempts" / "1" / "submit").read_text() == f"{waiting}\n"
    assert not (own / "attempts" / "1" / "end").exists()
    assert not (own / "attempts" / "1" / "claim").exists()
    keys = own / "script" / "secrets-1"
    assert (keys.read_text(), keys.stat().st_mode & 0o777) == ("export ACCESS_KEY='x'\n", 0o600)
    # Somebody else comes to the same end.
    shutil.rmtree(desk.home / "call2")
    again = desk.again(2, "node", "")
    assert again.slurm == answer.slurm
    assert len(desk.slurm.calls("sbatch")) == 2


def test_a_delivery_that_has_not_ended_finds_the_next_attempt_by_itself(desk: Desk) -> None:
    delivery(desk, ended=False)
    desk.began(1)
    assert desk.again(2, "node", "").slurm
    assert len(desk.slurm.calls("sbatch")) == 1


def test_a_delivery_that_cannot_be_submitted_again_says_so_in_its_end(desk: Desk) -> None:
    own = delivery(desk, ended=True)
    stub = desk.slurm.bin / "sbatch"
    refuses = "#!/bin/sh\ncase $* in */outputs/imports/*) echo no >&2; exit 1 ;; esac\n"
    stub.write_text(stub.read_text().replace("#!/bin/sh\n", refuses, 1))
    desk.began(1)
    assert desk.again(2, "node", "").slurm
    assert (own / "attempts" / "1" / "end").read_text() == "code=1\nstage=not-done\n"
