"""Pausing: said twice, by two clients at once, or in vain, it leaves nothing behind that a later end is taken for."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.slurm.stubs import Slurm
from towline.slurm.calls import pause_call
from towline.slurm.parse import SlurmId

KNOWS = """#!/bin/sh
echo "$*" >>@STATE@/scontrol.calls
case $1 in requeuehold) @MEANWHILE@ ;; esac
case " @MAY@ " in *" $1 "*) exit 0 ;; esac
echo "Access/permission denied for job $2" >&2
exit 1
"""


class Desk:
    def __init__(self, home: Path) -> None:
        self.home = home
        self.slurm = Slurm(home)
        self.job = home / "k1"
        self.job.mkdir()

    def tell(self, wish: str, may: str, *, waits: bool = False, resumes: bool = True, meanwhile: str = ":") -> int:
        """The exit code where scontrol does these things only; `meanwhile` happens while it puts the job back."""
        text = KNOWS.replace("@STATE@", str(self.slurm.state)).replace("@MAY@", may).replace("@MEANWHILE@", meanwhile)
        (self.slurm.bin / "scontrol").write_text(text)
        call = pause_call(str(self.job), wish, SlurmId("41"), waits=waits, resumes=resumes)
        return self.slurm.run(call, self.home / "call").code

    @property
    def is_marked(self) -> bool:
        return (self.job / "paused").exists()


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


@pytest.mark.parametrize(
    ("may", "resumes", "code", "marked"),
    [
        ("suspend", True, 0, False),
        ("requeuehold", True, 0, True),
        ("requeuehold", False, 60, False),
        ("hold", True, 1, False),
    ],
    ids=["suspended", "put-back", "cannot-resume", "refused"],
)
def test_a_job_that_runs_is_marked_only_when_it_ends_for_the_pause(
    desk: Desk, may: str, resumes: bool, code: int, marked: bool
) -> None:
    assert desk.tell("pause", may, resumes=resumes) == code
    assert desk.is_marked == marked


def test_the_mark_of_a_client_that_was_faster_stays(desk: Desk) -> None:
    (desk.job / "paused").touch()
    assert desk.tell("pause", "") == 1
    assert desk.is_marked


def test_a_job_that_waits_is_held_and_released(desk: Desk) -> None:
    assert desk.tell("pause", "hold", waits=True) == 0
    assert not desk.is_marked
    assert desk.slurm.calls("scontrol") == ["hold 41"]


def test_a_job_that_still_ends_for_its_pause_is_let_go_on_without_its_mark_being_lost(desk: Desk) -> None:
    """The job itself takes the mark away when it starts again; until then it may be about to read it."""
    (desk.job / "paused").touch()
    assert desk.tell("resume", "release", waits=True) == 0
    assert desk.is_marked


def test_a_cancelled_job_is_not_put_back(desk: Desk) -> None:
    (desk.job / "cancelled").touch()
    assert desk.tell("pause", "requeuehold") == 46
    assert desk.slurm.calls("scontrol") == []


def test_a_job_that_is_cancelled_while_it_is_put_back_is_ended_again(desk: Desk) -> None:
    """Slurm takes a job that ends into the queue again, held, and nobody else would end it any more."""
    assert desk.tell("pause", "requeuehold", meanwhile=f": >'{desk.job}/cancelled'") == 46
    assert desk.slurm.calls("scancel") == ["41"]
