"""Cancelling: marked first, then every job that there may be; gone or ended jobs are no failure."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.slurm.stubs import Slurm
from towline.slurm.calls import cancel_call
from towline.slurm.cancel import CancelAnswer, parse_cancel
from towline.slurm.parse import SlurmId

TOKEN = "train-k1-a1"  # noqa: S105 (a job name)
PENDING = "PENDING|1700000000|N/A|N/A|1||Resources"


class Desk:
    def __init__(self, home: Path) -> None:
        self.home = home
        self.slurm = Slurm(home)
        self.job = home / "the root" / "jobs" / "k1"
        self.calls = 0

    def cancel(self, *ids: SlurmId, token: str = TOKEN) -> CancelAnswer:
        self.calls += 1
        ran = self.slurm.run(cancel_call(str(self.job), token, ids), self.home / f"call{self.calls}")
        assert ran.code == 0, ran
        return parse_cancel(ran.out)


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def test_the_job_is_marked_and_ended(desk: Desk) -> None:
    (desk.job / "attempts").mkdir(parents=True)
    desk.slurm.add(41, TOKEN, PENDING)
    answer = desk.cancel(SlurmId("41"))
    assert answer == CancelAnswer(marked=True, told=(SlurmId("41"),))
    assert (desk.job / "cancelled").exists()
    assert desk.slurm.calls("scancel") == ["41"]
    assert desk.cancel(SlurmId("41")) == answer


def test_a_job_whose_answer_was_lost_is_found_by_its_token(desk: Desk) -> None:
    desk.slurm.add(41, TOKEN, PENDING)
    desk.slurm.add(42, "other", PENDING)
    assert desk.cancel() == CancelAnswer(marked=False, told=(SlurmId("41"),))


def test_ids_in_the_directory_count_too_and_each_once(desk: Desk) -> None:
    for number, answer in ((1, "41"), (2, "42;gpu")):
        (desk.job / "attempts" / str(number)).mkdir(parents=True)
        (desk.job / "attempts" / str(number) / "submit").write_text(answer + "\n")
    (desk.job / "attempts" / "1" / "claim").write_text("41\n")
    answer = desk.cancel(SlurmId("41"))
    assert set(answer.told) == {SlurmId("41"), SlurmId("42", "gpu")}
    assert sorted(desk.slurm.calls("scancel")) == ["--clusters=gpu 42", "41"]


def test_a_job_that_slurm_has_given_the_id_since_is_left_alone(desk: Desk) -> None:
    for number, works in ((41, "/home/me"), (42, str(desk.job)), (43, "/other/root/jobs/k1"), (44, f"{desk.job}0")):
        (desk.job / "attempts" / str(number)).mkdir(parents=True)
        (desk.job / "attempts" / str(number) / "submit").write_text(f"{number}\n")
        desk.slurm.add(number, "any", f"RUNNING|1|2|3|1|n|None|{works}")
    assert desk.cancel(token="").told == (SlurmId("42"), SlurmId("43"))
    assert desk.slurm.calls("scancel") == ["42 43"]


def test_content_of_the_directory_is_not_trusted(desk: Desk) -> None:
    (desk.job / "attempts" / "1").mkdir(parents=True)
    (desk.job / "attempts" / "1" / "submit").write_text("--user=alice\n")
    (desk.job / "attempts" / "1" / "claim").write_text("41 42\n")
    assert desk.cancel(token="") == CancelAnswer(marked=True, told=())
    assert desk.slurm.calls("scancel") == []


def test_nothing_there_is_no_failure(desk: Desk) -> None:
    assert desk.cancel(token="") == CancelAnswer(marked=False, told=())


def test_ended_jobs_are_no_failure_and_a_controller_that_is_away_is(desk: Desk) -> None:
    desk.slurm.set(
        scancel_fails="scancel: error: Kill job error on job id 41: Job/step already completing or completed\n"
    )
    assert desk.cancel(SlurmId("41")).failed == ""
    desk.slurm.set(scancel_fails="scancel: error: Kill job error on job id 41: Invalid job id specified\n")
    assert desk.cancel(SlurmId("41")).failed == ""
    desk.slurm.set(scancel_fails="scancel: error: Kill job error on job id 41: Unable to contact slurm controller\n")
    assert "Unable to contact" in desk.cancel(SlurmId("41")).failed


def test_a_look_up_that_failed_is_told(desk: Desk) -> None:
    desk.slurm.set(squeue_fails="slurm_load_jobs error: Unable to contact slurm controller (connect failure)\n")
    answer = desk.cancel()
    assert (answer.told, answer.looked_up) == ((), False)


def test_an_answer_that_broke_off_is_a_failure() -> None:
    assert parse_cancel("@mark done\n").failed


def test_of_an_array_one_task_is_cancelled(desk: Desk) -> None:
    (desk.job / "attempts" / "1").mkdir(parents=True)
    (desk.job / "attempts" / "1" / "submit").write_text("41\n")
    desk.slurm.add(41, TOKEN, PENDING)
    ran = desk.slurm.run(cancel_call(str(desk.job), TOKEN, [SlurmId("41")], task=3), desk.home / "call")
    assert parse_cancel(ran.out) == CancelAnswer(marked=True, told=(SlurmId("41_3"),))
    assert (desk.job / "cancelled-3").exists()
    assert not (desk.job / "cancelled").exists()
    assert desk.slurm.calls("scancel") == ["41_3"]
