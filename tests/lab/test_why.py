"""Real ends of jobs, and what is said of them. The jobs end side by side, for some of them take their time."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from typing import Any

import pytest

from tests.lab.faulty import as_alice, fault
from tests.lab.terminal import Terminal
from towline.lab import Lab, kernel
from towline.lab.process import until

TRACEBACK = 'printf "Traceback (most recent call last):\\n  File t.py, line 3\\nKeyError: caption\\n" >&2'
XID = "NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus."
WATCHDOG = (
    "[rank0]:[E ProcessGroupNCCL.cpp:616] [Rank 0] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=8)"
)
ONCE = ("--restart", "never")
HOG = "head -c 300M /dev/zero | tail | wc -c"


@pytest.fixture(scope="module")
def towline(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Terminal:
    return Terminal(tmp_path_factory.mktemp("why"))


def shell(towline: Terminal, script: str, *options: str) -> str:
    return towline.submit(*ONCE, *options, "--", "sh", "-c", script)


def held(towline: Terminal, lab: Lab, spoil: str, *options: str) -> str:
    """A job whose directory is spoiled while it waits; `spoil` is a shell script in it."""
    job = shell(towline, "true", "--nodelist", "node1", "--sbatch", "hold", *options)
    found = towline.job(job)
    as_alice(lab, f"cd {shlex.quote(found['directory'])} && {spoil} && scontrol release {found['slurm_ids'][0]}")
    return job


@pytest.fixture(scope="module")
def ends(towline: Terminal, lab: Lab) -> Iterator[dict[str, str]]:
    """Name → id of jobs that have ended, each in its own way."""
    begun = {
        "crash": shell(towline, "sleep 300", "--nodelist", "node4"),
        "time": shell(towline, "sleep 300", "--nodelist", "node1"),
        "preempted": shell(towline, "sleep 300", "--nodelist", "node3", "--exclusive", "--partition", "low"),
        "python": shell(
            towline,
            f"if [ $RANK = 3 ]; then {TRACEBACK}; exit 1; fi; sleep 1; echo '{WATCHDOG}' >&2; exit 1",
            *("--nodes", "2", "--tasks-per-node", "2", "--nodelist", "node1,node2"),
        ),
        "xid": shell(
            towline,
            f"if [ $RANK = 1 ]; then echo '{XID}' >&2; exit 1; fi; sleep 300",
            *("--nodes", "2", "--nodelist", "node1,node2"),
        ),
    }
    slurm = {job: towline.until(begun[job], running)["slurm_ids"][0] for job in ("crash", "time", "preempted")}
    # Only to the minute otherwise.
    lab.run_on("ctl", ["scontrol", "update", f"JobId={slurm['time']}", "EndTime=now+1"])
    urgent = shell(towline, "true", "--nodelist", "node3", "--exclusive", "--partition", "urgent")
    try:
        with fault(lab, "node-crash", "node4"):
            begun["launch"] = held(towline, lab, "rm -r attempts && touch attempts")
            towline("wait", begun["python"], begun["xid"])
            with fault(lab, "hook-fail", "node2"):
                begun["hook"] = shell(towline, "true", "--nodes", "2", "--nodelist", "node1,node2")
                towline("wait", begun["hook"])
            towline("wait", *begun.values(), urgent)
        yield begun
    finally:
        towline("cancel", *begun.values(), urgent)


def running(job: dict[str, Any]) -> bool:
    return job["state"] == "running"


def why(towline: Terminal, job: str) -> dict[str, Any]:
    done = towline("why", "--json", job)
    assert done.code == 0, done
    (found,) = done.json["jobs"]
    assert found["diagnosis"] is not None, found
    return found["diagnosis"]


@pytest.mark.parametrize(
    ("end", "kind", "retry", "node"),
    [
        ("python", "user", "no", "node2"),
        ("xid", "node", "yes", "node2"),
        ("hook", "node", "yes", "node2"),
        ("launch", "user", "no", ""),
        ("crash", "node", "yes", "node4"),
        ("time", "time", "resume", ""),
        ("preempted", "preempted", "yes", ""),
    ],
)
def test_the_cause_of_a_real_end_is_found(
    towline: Terminal, ends: dict[str, str], end: str, kind: str, retry: str, node: str
) -> None:
    found = why(towline, ends[end])
    assert (found["kind"], found["retry"]) == (kind, retry), found
    assert found["blames"] == (kind == "node"), found
    if node:
        assert found["node"] == node


def test_what_the_site_noted_at_a_job_that_it_cancelled(towline: Terminal, lab: Lab) -> None:
    job = shell(towline, "sleep 300")
    slurm_id = towline.until(job, running)["slurm_ids"][0]
    note = "AdminComment=gpu-idle-watch: cancelled, 8 GPUs idle for 30 min"
    lab.run_on("ctl", ["scontrol", "update", f"JobId={slurm_id}", note], check=True)
    lab.run_on("ctl", ["scancel", slurm_id], check=True)
    towline("wait", job)
    found = why(towline, job)
    assert (found["kind"], found["retry"]) == ("idle-reaper", "no"), found
    assert "8 GPUs idle" in found["evidence"]


def test_memory_that_ran_out_in_a_step_and_in_the_batch_script(towline: Terminal, lab: Lab) -> None:
    assert kernel.has_cgroup_v1(), "this machine's lab cannot confine memory; `lab status` says so"
    step = shell(towline, HOG, "--memory", "60M")
    batch = held(towline, lab, f"printf '#!/bin/sh\\n{HOG}\\n' >script/supervisor", "--memory", "60M")
    towline("wait", step, batch)
    assert [why(towline, job)["kind"] for job in (step, batch)] == ["memory", "memory"]


def test_a_quota_that_is_used_up(towline: Terminal, lab: Lab) -> None:
    """The log lies on the same disk: it has the line since there is room again."""
    bare = Terminal(towline.state, {"TOWLINE_RUNTIME": "none"})
    script = (
        "cd $TOWLINE_RESULTS_DIR; : >begun; e=/tmp/why-$TOWLINE_JOB_ID\n"
        "while cp /etc/services copy 2>$e; do rm copy; sleep 0.2; done; rm begun\n"
        "until { : >room; } 2>/dev/null; do sleep 0.2; done; cat $e >&2; exit 1"
    )
    job = bare.submit(*ONCE, "--nodelist", "node1", "--shell", script)
    begun = shlex.quote(f"{bare.job(job)['directory']}/results/begun")
    until(lambda: as_alice(lab, f"ls {begun} 2>&1 || :") == begun, 60, "the job's start")
    with fault(lab, "quota"):
        until(lambda: as_alice(lab, f"ls {begun} 2>&1 || :") != begun, 30, "the refusal")
    towline("wait", job)
    found = why(towline, job)
    assert (found["kind"], found["retry"], found["blames"]) == ("filesystem", "no", False), found
    assert "Disk quota exceeded" in found["evidence"]
