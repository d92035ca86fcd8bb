"""What TAO's SDK refuses on real login hosts, what it leaves alone, and what cannot make it lose or double a job."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.lab.tao_jobs import IMAGE, ended
from towline.lab import Lab
from towline.lab.layout import ALICE
from towline.models.errors import SpecError, TowlineError
from towline.tao.platforms.slurm import SlurmSDK, handler


def test_a_key_that_others_can_read_is_refused_and_stays_as_it_is(
    tao_variables: dict[str, str], lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = tmp_path / "key"
    shutil.copy(lab.paths.key(ALICE), key)
    key.chmod(0o644)
    monkeypatch.setenv("SSH_KEY_PATH", str(key))
    monkeypatch.setenv("TOWLINE_STATE_DIR", f"{tao_variables['TOWLINE_STATE_DIR']}-own")
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    with SlurmSDK() as sdk:
        with pytest.raises(TowlineError) as refused:
            sdk.create_job(IMAGE, "true", gpu_count=0)
        assert sdk.list_jobs("Error"), "and it was not started"
    assert str(key) in str(refused.value)
    assert f"chmod 600 {key}" in refused.value.fix
    assert key.stat().st_mode & 0o777 == 0o644
    key.chmod(0o600)
    with SlurmSDK() as sdk:
        assert sdk.check_path("/lustre")


DIES = """
import os, signal, sys
from towline.engine.facade import Cluster
from towline.tao.platforms.slurm import SlurmSDK

submit = Cluster.submit

def die(self, *args, **kwargs):
    if sys.argv[1] == "after":
        submit(self, *args, **kwargs)
    os.kill(os.getpid(), signal.SIGKILL)

Cluster.submit = die
SlurmSDK(poll_interval=1).create_job(sys.argv[2], "echo ran", gpu_count=0)
"""


@pytest.mark.parametrize(("when", "jobs"), [("before", 0), ("after", 1)])
def test_a_process_that_is_killed_in_create_job_leaves_one_job_or_none(
    tao_variables: dict[str, str], lab: Lab, monkeypatch: pytest.MonkeyPatch, when: str, jobs: int
) -> None:
    state = Path(tao_variables["TOWLINE_STATE_DIR"])
    state.mkdir()
    done = subprocess.run([sys.executable, "-c", DIES, when, IMAGE], capture_output=True, check=False)
    assert done.returncode == -signal.SIGKILL, done
    with SlurmSDK(poll_interval=1) as one, SlurmSDK(poll_interval=1) as two:
        (row,) = one.list_jobs()
        job_id = row["job_id"]
        if when == "after":
            assert {ended(each, job_id) for each in (one, two)} == {"Complete"}
            assert one.get_job_logs(job_id) == "ran\n"
        else:
            assert one.get_job_status(job_id).status == "Pending", "somebody may be about to submit it"
            monkeypatch.setattr(handler, "UNSENT", 0.0)
            found = two.get_job_status(job_id)
            assert (found.status, "nothing was sent" in found.message) == ("Error", True)
            assert one.get_job_status(job_id).status == "Error"
    asked = f"sacct -n -X -S now-1hour --format=JobName%60 | grep -c tao-job-{job_id} || true"
    assert lab.run_on("login1", ["sh", "-c", asked], user=ALICE.name).stdout.strip() == str(jobs)


def test_odd_questions_are_answered(sdk: SlurmSDK) -> None:
    odd: tuple[Any, ...] = ("a00000000", "nosuch", "", None, 5, "../x", "a\nb")
    for each in odd:
        assert sdk.get_job_status(each).status == "Unknown"
        assert sdk.get_job_logs(each) == ""
        assert sdk.cancel_job(each) is False
        assert sdk.get_failure_analysis(each) is None
        assert sdk.get_job_results_dir(each) == ""
        assert sdk.get_checkpoints(each) == []
        assert sdk.get_job(each) is None
        assert sdk.delete_job_artifacts(each) is False
    wrong: tuple[Any, ...] = ([1], {"on_complete": 5}, {"on_completed": print})
    for hooks in wrong:
        with pytest.raises(SpecError):
            sdk.create_job(IMAGE, "true", gpu_count=0, hooks=hooks)
    assert sdk.list_jobs() == [], "nothing was sent"
    none: Any = {"on_complete": None}
    job = sdk.create_job(IMAGE, "echo a; echo b", gpu_count=0, hooks=none)
    assert ended(sdk, job.id) == "Complete"
    odd_tails: list[tuple[Any, str]] = [
        (0, ""),
        (-1, ""),
        (1, "b\n"),
        ("1", "b\n"),
        (10**9, "a\nb\n"),
        (None, "a\nb\n"),
    ]
    for tail, text in odd_tails:
        assert sdk.get_job_logs(job.id, tail=tail) == text
    assert sdk.cancel_job(job.id), "one that is over counts as cancelled"
    assert sdk.get_job_status(job.id).status == "Complete"
