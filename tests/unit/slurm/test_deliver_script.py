"""The job that takes results away: of an array the tasks that succeeded, each to a place of its own."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.unit.slurm.stubs import Slurm
from towline.engine.data.delivering import told
from towline.engine.data.program import program
from towline.slurm.preparation import Preparation, parse_preparations, state_call
from towline.slurm.scripts import script


class Site:
    """A job directory whose job has ended, and the job that takes its results away."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.slurm = Slurm(home)
        self.job = home / "jobs" / "j1"
        self.place = home / "my results"
        self.own = self.job / "outputs" / "imports" / "all"
        (self.own / "attempts" / "1").mkdir(parents=True)
        (self.own / "attempts" / "1" / "submit").write_text("77\n")
        (self.own / "script").mkdir()
        files = {"data": "deliver_python=''\n", "variables": "", "outputs": f"{self.place}\nmodel\n", "batch-1": ""}
        for name, text in files.items():
            (self.own / "script" / name).write_text(text)
        (self.own / "script" / "stager").write_bytes(program())
        (self.job / "results").mkdir()

    def end(self, part: str, verdict: str, attempt: int = 1) -> None:
        """How an attempt, or `task-<n>` of it, ended; what it made is its own number."""
        folder = self.job / "attempts" / str(attempt) / part
        folder.mkdir(parents=True)
        (folder / "end").write_text(f"code=0\nverdict={verdict}\nreason=\n")
        made = self.job / "results" / part.removeprefix("task-") / "model"
        made.mkdir(parents=True, exist_ok=True)
        (made / "w").write_text(f"{part} {attempt}")

    def tasks(self, *numbers: int) -> None:
        (self.own / "script" / "tasks").write_text("".join(f"{number}\n" for number in numbers))
        (self.job / "attempts" / "1").mkdir(parents=True, exist_ok=True)
        (self.job / "attempts" / "1" / "submit").write_text("41\n")

    def deliver(self) -> Preparation:
        env = {
            "PATH": f"{self.slurm.bin}:{os.environ['PATH']}",
            "TOWLINE_JOB_DIR": str(self.own),
            "TOWLINE_ATTEMPT": "1",
            "SLURM_JOB_ID": "77",
        }
        subprocess.run(["/bin/sh", "-c", script("deliver-job")], env=env, check=False, capture_output=True)
        looked = self.slurm.run(state_call(f"{self.job}/outputs", ["all"]), self.home / "call")
        return parse_preparations(looked.out)["all"]

    @property
    def arrived(self) -> dict[str, str]:
        return {str(path.relative_to(self.place)): path.read_text() for path in self.place.rglob("*") if path.is_file()}


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path)


def test_results_of_one_job_are_taken_to_the_place_itself(site: Site) -> None:
    site.end("", "done")
    assert site.deliver().ready
    assert site.arrived == {"w": " 1"}


def test_each_task_that_succeeded_has_a_place_of_its_own(site: Site) -> None:
    site.tasks(0, 3, 5, 8)
    site.end("task-0", "done")
    site.end("task-3", "failed")
    site.end("task-5", "stopped")
    site.end("task-5", "done", attempt=2)  # it was preempted, and started again; task 8 never was
    found = site.deliver()
    assert found.ready
    assert site.arrived == {"0/w": "task-0 1", "5/w": "task-5 2"}
    assert told(found, ["/x/TASK/"]).endswith(
        "were taken to /x/TASK/; those of 2 tasks that did not succeed stay (3, 8)"
    )


def test_of_an_array_without_success_nothing_is_taken(site: Site) -> None:
    site.tasks(0)
    site.end("task-0", "failed")
    assert "the job did not succeed" in told(site.deliver(), ["/x"])
    assert not site.place.exists()


def test_an_array_that_goes_on_is_waited_for_under_a_job_that_is_found(site: Site) -> None:
    site.tasks(0, 1)
    site.end("task-0", "done")
    (site.job / "attempts" / "2" / "task-1").mkdir(parents=True)
    site.slurm.add(41, "sweep", "RUNNING")
    found = site.deliver()
    assert not site.place.exists()
    (waiting,) = [job for job in site.slurm.jobs if job != 41]
    assert (found.slurm_id, found.failed) == (str(waiting), False)


def test_what_one_task_did_not_make_keeps_nothing_else_back(site: Site) -> None:
    site.tasks(0, 1, 2)
    for number in range(3):
        site.end(f"task-{number}", "done")
    (site.job / "results" / "0" / "model" / "w").unlink()
    (site.job / "results" / "0" / "model").rmdir()
    assert "0/model: the job has made nothing of that name" in told(site.deliver(), ["/x"])
    assert sorted(site.arrived) == ["1/w", "2/w"]


def test_a_job_that_goes_on_in_the_moment_of_the_last_word_is_waited_for(site: Site) -> None:
    """A client had submitted the next attempt, and had seen this one before its end was written."""
    site.end("", "failed")
    late = site.home / "bin" / "mv"  # what writes the end
    late.write_text(
        "#!/bin/sh\n"
        f"case $* in *.end*) mkdir -p '{site.job}/attempts/2'; echo 43 >'{site.job}/attempts/2/submit' ;; esac\n"
        'exec /bin/mv "$@"\n'
    )
    late.chmod(0o755)
    site.slurm.add(43, "train", "RUNNING")
    found = site.deliver()
    assert site.slurm.calls("sbatch")[0].startswith("--parsable --dependency=afterany:43 ")
    assert not found.failed
    (waiting,) = [job for job in site.slurm.jobs if job != 43]
    assert found.slurm_id == str(waiting)


def test_a_job_whose_id_slurm_has_given_to_another_is_not_waited_for(site: Site) -> None:
    site.end("", "failed")
    (site.job / "attempts" / "2").mkdir()
    (site.job / "attempts" / "2" / "submit").write_text("43\n")
    site.slurm.add(43, "by-hand", "RUNNING|1|2|3|1|n|None|/home/me")
    assert site.deliver().failed
    assert site.slurm.calls("sbatch") == []
