"""Jobs that go on after faults, and what is told of them; `./chaos matrix` has all the faults."""

from __future__ import annotations

import json
import sqlite3
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.lab.faulty import as_alice, fault
from tests.lab.terminal import Terminal
from towline.lab import Lab
from towline.lab.process import until

LINE = "NVRM: Xid (PCI:0000:1b:00): 79, GPU has fallen off the bus."
GONE = "slurm_load_jobs error: Invalid job id specified"
XID = f'[ "$TOWLINE_ATTEMPT" -gt 1 ] || {{ echo "{LINE}" >&2; exit 1; }}; echo on'


@pytest.fixture
def towline(lab: Lab, tmp_path: Path) -> Terminal:
    return Terminal(tmp_path / "state")


def knows_one(towline: Terminal) -> bool:
    """Whether the store has a job; it may not be there yet."""
    try:
        with sqlite3.connect(f"file:{towline.state}/store.db?mode=ro", uri=True) as db:
            return bool(db.execute("SELECT count(*) FROM jobs").fetchone()[0])
    except sqlite3.OperationalError:
        return False


def test_a_node_fault_goes_on_elsewhere_and_its_node_is_left_out_by_the_next_job(towline: Terminal) -> None:
    job = towline.submit("--name", "xid", "--", "sh", "-c", XID)
    assert towline("wait", job).code == 0
    first, second = towline.job(job)["attempts"]
    assert (first["cause"], first["bad_nodes"]) == ("node", first["nodes"])
    assert "Xid" in first["evidence"]
    assert second["nodes"] not in ("", first["nodes"])
    plan = towline("plan", "--", "true")
    assert f"{first['nodes']} is left out" in plan.out
    assert (
        f"--exclude={first['nodes']}" in towline("plan", "--json", "--", "true").json["plan"]["files"]["script/batch"]
    )


def test_a_paused_job_waits_and_goes_on_where_it_was(towline: Terminal) -> None:
    text = 'r=$TOWLINE_RESULTS_DIR; [ ! -e "$r/c.pt" ] || exit 0; echo >"$r/c.pt"; echo begun; exec sleep 300'
    job = towline.submit("--checkpoints", "*.pt", "--", "sh", "-c", text)
    towline.until(job, lambda _: "begun" in towline("logs", job).out)
    with towline.start("pause", job) as other:
        assert towline("pause", job).code == 0
        other.communicate(timeout=60)
    assert other.returncode == 0
    towline.until(job, lambda each: each["state"] == "pending")
    assert [towline("resume", job).code for _ in range(2)] == [0, 0]
    assert towline("wait", job).code == 0
    assert len(towline.job(job)["attempts"]) == 2
    assert towline("pause", job).code == 64


@pytest.mark.parametrize("closed", [(), ("no-scontrol-on-nodes", "no-submit-from-nodes")], ids=["itself", "a client"])
def test_a_pause_between_two_attempts_holds_the_next(towline: Terminal, lab: Lab, closed: tuple[str, ...]) -> None:
    text = f'{XID}; [ -e "$TOWLINE_RESULTS_DIR/c.pt" ] || exec sleep 300'
    with ExitStack() as faults:
        for each in closed:
            faults.enter_context(fault(lab, each))
        job = towline.submit("--checkpoints", "*.pt", "--", "sh", "-c", text)
        decision = f"{towline.job(job)['directory']}/attempts/1/decision"
        as_alice(lab, f"for i in $(seq 100); do [ ! -e '{decision}' ] || exit 0; sleep 0.3; done; exit 1")
        assert towline("pause", job).code == 0
        held = towline.until(job, lambda each: each["state"] == "pending")["attempts"]
        assert [each["cause"] for each in held] == ["node", ""]
        assert "held" in towline("status", job).out
    as_alice(lab, f"touch '{towline.job(job)['directory']}/results/c.pt'")
    assert towline("resume", job).code == 0
    assert towline("wait", job).code == 0


def test_a_cancel_beside_a_pause_is_final(towline: Terminal, lab: Lab) -> None:
    text = 'echo >"$TOWLINE_RESULTS_DIR/c.pt"; exec sleep 300'
    job = towline.submit("--checkpoints", "*.pt", "--", "sh", "-c", text)
    slurm_id = towline.until(job, lambda each: each["state"] == "running")["attempts"][0]["slurm_id"]
    with towline.start("pause", job) as pausing:
        assert towline("cancel", job).code == 0
        pausing.communicate(timeout=60)
    assert pausing.returncode in (0, 64)
    assert towline.job(job)["state"] == "cancelled"
    assert as_alice(lab, f"squeue --noheader --jobs={slurm_id} 2>&1 || true") in ("", GONE)
    assert towline("resume", job).code == 64


def test_what_the_job_could_not_start_is_started_by_a_machine_that_adopts_it(
    towline: Terminal, lab: Lab, tmp_path: Path
) -> None:
    with fault(lab, "no-scontrol-on-nodes"), fault(lab, "no-submit-from-nodes"):
        job = towline.submit("--name", "wanted", "--", "sh", "-c", XID)
        directory = towline.job(job)["directory"]
        script = f"for i in $(seq 100); do [ ! -e {directory}/attempts/1/wanted ] || exit 0; sleep 0.3; done; exit 1"
        lab.run_on("login1", ["sh", "-c", script], user="alice", check=True)
        other, third = Terminal(tmp_path / "other"), Terminal(tmp_path / "third")
        # All at once; one of them starts it.
        with third.start("adopt") as adopting, towline.start("wait", job) as waiting:
            assert job in {each["id"] for each in other("adopt", "--json").json["jobs"]}
            assert other("wait", job).code == 0
            for each in (adopting, waiting):
                each.communicate(timeout=60)
        assert waiting.returncode == 0
    names = f"wanted-{job}-a2,wanted-{job}-a3"
    assert as_alice(lab, f"sacct -n -X -P -o JobName --name={names}").splitlines() == [f"wanted-{job}-a2"]
    assert [each["cause"] for each in other.job(job)["attempts"]] == ["node", ""]
    assert other("adopt", "--json").json["jobs"] == []
    assert towline("wait", job).code == 0


def test_adopting_that_is_killed_is_completed_by_the_next(towline: Terminal, tmp_path: Path) -> None:
    jobs = {towline.submit("--", "true") for _ in range(3)}
    other = Terminal(tmp_path / "other")
    with other.start("adopt") as adopting:
        until(lambda: knows_one(other), 60, "one of them is known")
        adopting.kill()
    assert other("adopt").code == 0
    known = [each["id"] for each in other("ps", "-a", "--json").json["jobs"]]
    assert jobs <= set(known)
    assert len(known) == len(set(known))
    assert [other("wait", job).code for job in jobs] == [0, 0, 0]
    events = [json.loads(line) for line in other("events", "--json").out.splitlines()]
    assert sorted(each["job_id"] for each in events if each["event"] == "created" and each["job_id"] in jobs) == sorted(
        jobs
    )
    assert other("adopt", "--json").json["jobs"] == []
