"""Jobs that stand still, with `--hang-after`: ended with their stacks, or left alone while they show signs of work."""

from __future__ import annotations

import base64
import secrets
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.lab.faulty import as_alice, fault
from tests.lab.terminal import Terminal
from towline.lab import Lab

HANGS = """\
[ "$TOWLINE_ATTEMPT" -gt 1 ] || PATH=$PATH:/opt/tools exec python3 -c '
import time
def stands_still():
    time.sleep(300)
stands_still()'
echo on"""
COUNTS = "for i in $(seq 22); do sleep 1; done"
SAVES = 'for i in $(seq 18); do echo $i >>"$TOWLINE_RESULTS_DIR/model.part"; sleep 1; done'


@pytest.fixture
def towline(lab: Lab, tmp_path: Path) -> Terminal:
    return Terminal(tmp_path / "state")


def control(lab: Lab, word: str, slurm_id: str) -> None:
    """As an administrator, or a scheduler that lets jobs take turns."""
    lab.run_on("login1", ["scontrol", word, slurm_id], check=True)


@pytest.fixture
def tools(lab: Lab) -> Iterator[str]:
    """A folder of the cluster with py-spy."""
    folder = f"/lustre/alice/labtest-tools-{secrets.token_hex(4)}"
    program = base64.b64encode(Path(sys.executable).with_name("py-spy").read_bytes()).decode()
    place = f"mkdir {folder} && base64 -d >{folder}/py-spy && chmod -R a+rx {folder}"
    lab.run_on("login1", ["sh", "-c", place], stdin=program, check=True)
    yield folder
    lab.run_on("login1", ["rm", "-r", folder], check=True)


def test_a_hung_job_leaves_its_stacks_and_goes_on_while_those_that_work_are_left_alone(
    towline: Terminal, lab: Lab, tools: str
) -> None:
    """One test for all, for each of them takes as long as the limit."""
    watched = ("--hang-after", "10s", "--cpus-per-task", "1")
    stopped = towline.submit("--gpus", "1", "--nodelist", "node2", *watched, "--", "sh", "-c", COUNTS)
    attempt = f"{towline.job(stopped)['directory']}/attempts/1"
    # Its GPU is watched in the second half of the time.
    as_alice(lab, f"for i in $(seq 200); do [ ! -d '{attempt}/use' ] || exit 0; sleep 0.2; done; exit 1")
    control(lab, "suspend", as_alice(lab, f"cat '{attempt}/submit'"))
    with fault(lab, "gpu-busy", "node3"):
        image = ("--image", "/lustre/images/python.sqsh", "--mount", f"{tools}:/opt/tools")
        size = ("--nodes", "2", "--exclude", "node3")
        hung = towline.submit("--name", "hung", *image, *size, *watched, "--", "sh", "-c", HANGS)
        saves = towline.submit("--name", "saves", *watched, "--", "sh", "-c", SAVES)
        busy = towline.submit("--gpus", "1", "--nodelist", "node3", *watched, "--", "sleep", "25")
        assert [towline("wait", job).code for job in (hung, saves, busy)] == [0, 0, 0]
    first, second = towline.job(hung)["attempts"]
    assert first["cause"] == "ambiguous"
    assert "attempts/1/stacks" in first["evidence"]
    assert second["cause"] == ""
    with fault(lab, "gpu-busy", "node2"):  # what had asked for its GPU has had no time left for long
        control(lab, "resume", as_alice(lab, f"cat '{attempt}/submit'"))
        assert towline("wait", stopped).code == 0
    assert [len(towline.job(job)["attempts"]) for job in (saves, busy, stopped)] == [1, 1, 1]
    stacks = f"{towline.job(hung)['directory']}/attempts/1/stacks"
    said = lab.run_on("login1", ["sh", "-c", f"cd '{stacks}' && ls && cat log"], user="alice", check=True).stdout
    nodes = lab.run_on("login1", ["scontrol", "show", "hostnames", first["nodes"]], check=True).stdout.split()
    assert said.split()[:3] == ["log", *nodes]
    assert said.count("most recent call first") == 2
    for node in nodes:
        assert "stands_still (<string>:4)" in as_alice(lab, f"cat '{stacks}/{node}'"), "py-spy was not asked"
