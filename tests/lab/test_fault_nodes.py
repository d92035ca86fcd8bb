"""Faults of compute nodes, as a user sees them, and that turning them off undoes them."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from click.testing import CliRunner

from tests.lab.faulty import TICKET, as_alice, await_field, fault, job_field, submit
from towline.cli.lab import lab as command
from towline.lab import Lab, LabError
from towline.lab.process import until


@pytest.fixture(autouse=True)
def no_jobs_left(lab: Lab) -> Iterator[None]:
    yield
    as_alice(lab, f"scancel --name={TICKET}")


def states(lab: Lab) -> dict[str, str]:
    lines = as_alice(lab, "sinfo -h -N -o '%N %T'").splitlines()
    return dict(line.split(" ", 1) for line in lines)


def test_a_crashed_and_a_cut_node_are_missed_and_come_back(lab: Lab) -> None:
    ticks = "/lustre/alice/ticks"
    crashed = submit(lab, "-w node1 --requeue", "sleep 300")
    cut = submit(lab, "-w node2 --no-requeue", f"while sleep 0.2; do echo >>{ticks}; done")
    await_field(lab, crashed, "JobState", "RUNNING")
    until(lambda: as_alice(lab, f"wc -l <{ticks} || true").isdecimal(), 30, "the first tick")
    with fault(lab, "node-crash", "node1"), fault(lab, "node-cut", "node2"):
        assert lab.status().faults == ("node-crash node1", "node-cut node2")
        with pytest.raises(LabError, match="node1 is not up"):
            lab.run_on("node1", ["true"])
        before = int(as_alice(lab, f"wc -l <{ticks}"))
        until(lambda: int(as_alice(lab, f"wc -l <{ticks}")) > before, 10, "a tick of the node that is cut off")
        until(lambda: states(lab)["node1"] == states(lab)["node2"] == "down*", 60, "the loss of both nodes")
        assert job_field(lab, crashed, "JobState") == "PENDING"
        assert job_field(lab, crashed, "Restarts") == "1"
        assert job_field(lab, cut, "JobState") == "NODE_FAIL"
    assert as_alice(lab, f"rm {ticks}; timeout 30 srun -N2 -w node1,node2 hostname | sort").split() == [
        "node1",
        "node2",
    ]


def test_a_drained_node_takes_no_job_until_it_is_given_back(lab: Lab) -> None:
    run = CliRunner()
    assert run.invoke(command, ["fault", "node-drain", "on", "node3"]).output == "node-drain node3: on\n"
    job = submit(lab, "-w node3")
    assert states(lab)["node3"] == "drained"
    until(lambda: "UnavailableNodes:node3" in as_alice(lab, f"squeue -h -j {job} -o %R"), 20, "the reason")
    assert "[on: node3]" in run.invoke(command, ["fault", "list"]).output
    assert json.loads(run.invoke(command, ["status", "--json"]).output)["faults"] == ["node-drain node3"]
    assert run.invoke(command, ["fault", "all", "off"]).output == "node-drain node3: off\n"
    await_field(lab, job, "JobState", "COMPLETED")
    assert lab.status().faults == ()


def test_a_failing_prolog_holds_the_job_and_drains_the_node(lab: Lab) -> None:
    with fault(lab, "prolog-fail", "node3"):
        job = submit(lab, "-w node3")
        until(lambda: "held" in as_alice(lab, f"squeue -h -j {job} -o %R"), 30, "the failed launch")
        assert states(lab)["node3"].startswith("drain")
    as_alice(lab, f"scontrol release {job}")
    await_field(lab, job, "JobState", "COMPLETED")


def test_a_node_that_does_not_boot_is_given_up_and_boots_when_it_can(lab: Lab) -> None:
    with fault(lab, "boot-fail"):
        until(lambda: states(lab)["cloud1"] == "idle~", 40, "the cloud node's power to go")
        job = submit(lab, "-p cloud")
        until(lambda: states(lab)["cloud1"].startswith("down"), 40, "the boot that never ends")
        assert job_field(lab, job, "JobState") != "RUNNING"
    # Not that job: Slurm 22.05 sends the prolog of one whose node did not boot once only, and so holds it.
    as_alice(lab, f"scancel {job}")
    assert as_alice(lab, "timeout 35 srun -p cloud hostname") == "cloud1"


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["node-crash"], "needs NODE"),
        (["node-crash", "node9"], "node9"),
        (["node-crash", "login1"], "There are: node1"),
        (["node-crash", "node1", "node2"], "takes 1 arguments at most"),
        (["nonsense"], "There are: account-expired"),
    ],
)
def test_a_fault_that_cannot_be_is_refused(lab: Lab, words: list[str], says: str) -> None:
    with pytest.raises(LabError) as raised:
        lab.fault_on(*words)
    assert says in f"{raised.value.what} {raised.value.fix}"
    assert lab.status().faults == ()
