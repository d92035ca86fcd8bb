"""Heterogeneous jobs on the real Slurm: components of different kinds of nodes, with one verdict."""

from __future__ import annotations

import json
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.lab.faulty import fault
from tests.lab.terminal import Terminal
from towline.lab import Lab

LOST = "NVRM: Xid (PCI:0000:1b:00): 79, GPU has fallen off the bus."
SHOW = 'echo "$(uname -n) $RANK/$WORLD_SIZE $MASTER_ADDR [$TOWLINE_NODES_ACTOR] gpus=${CUDA_VISIBLE_DEVICES-none}"'


@pytest.fixture
def towline(lab: Lab, tmp_path: Path) -> Terminal:
    return Terminal(tmp_path / "state")


def described(folder: Path, learner: str, actor: str) -> str:
    roles: list[dict[str, Any]] = [
        {"name": "actor", "shell": actor, "partition": "cpu", "tasks_per_node": 2},
        {"name": "learner", "nodes": 2, "shell": learner, "resources": {"gpus_per_node": 4, "memory": "2G"}},
    ]
    path = folder / "job.json"
    path.write_text(json.dumps({"name": "two-kinds", "roles": roles, "resources": {"time": "10m"}}))
    return str(path)


def test_components_run_on_nodes_of_their_kind(towline: Terminal, tmp_path: Path) -> None:
    done = towline("run", "--json", "-f", described(tmp_path, SHOW, SHOW))
    assert done.code == 0, done
    text: dict[str, str] = {}
    for event in done.lines:
        if event["event"] == "log" and event["stream"] == "out":
            text[event["role"]] = text.get(event["role"], "") + event["text"]
    actor, learner = (sorted(text[role].splitlines()) for role in ("actor", "learner"))
    assert actor == [f"cpu1 {rank}/2 cpu1 [cpu1] gpus=none" for rank in (0, 1)]
    hosts = [line.split()[0] for line in learner]
    assert [line.partition(" ")[2] for line in learner] == [
        f"{rank}/2 {hosts[0]} [cpu1] gpus=0,1,2,3" for rank in (0, 1)
    ]
    last = done.lines[-1]["job"]["attempts"][-1]
    assert [each["slurm_id"] for each in last["components"]] == [f"{last['slurm_id']}+0", f"{last['slurm_id']}+1"]
    assert last["components"][0]["nodes"] == "cpu1"
    assert last["nodes"].startswith("cpu1,node")


def test_a_node_of_a_component_without_its_gpus_is_left_out_by_the_next_attempt(
    towline: Terminal, lab: Lab, tmp_path: Path
) -> None:
    roles: list[dict[str, Any]] = [
        {"name": "actor", "shell": "true", "partition": "cpu"},
        {"name": "learner", "shell": "true", "resources": {"gpus_per_node": 8, "memory": "2G"}},
    ]
    (tmp_path / "job.json").write_text(json.dumps({"name": "kinds", "roles": roles, "resources": {"time": "10m"}}))
    with fault(lab, "gpu-lost", "node1", "0"):
        done = towline("run", "--json", "-f", str(tmp_path / "job.json"))
    assert done.code == 0, done
    first, second = done.lines[-1]["job"]["attempts"]
    assert (first["cause"], first["bad_nodes"]) == ("node", "node1")
    assert "node1" not in second["nodes"]


@pytest.mark.parametrize("closed", [(), ("no-submit-from-nodes",)], ids=["the node submits", "a client submits"])
def test_components_go_on_together_where_nodes_may_not_put_them_back(
    towline: Terminal, lab: Lab, tmp_path: Path, closed: tuple[str, ...]
) -> None:
    file = described(tmp_path, f'[ "$TOWLINE_ATTEMPT" -gt 1 ] || {{ echo "{LOST}" >&2; exit 1; }}', "true")
    with ExitStack() as faults:
        for each in ("no-scontrol-on-nodes", *closed):
            faults.enter_context(fault(lab, each))
        done = towline("run", "--json", "-f", file)
    assert done.code == 0, done
    first, second = done.lines[-1]["job"]["attempts"]
    assert first["cause"] == "node"
    assert second["slurm_id"] != first["slurm_id"]
    assert [each["slurm_id"] for each in second["components"]] == [f"{second['slurm_id']}+{at}" for at in (0, 1)]
    assert first["bad_nodes"] not in second["nodes"]


def test_components_begin_anew_together_when_slurm_puts_one_of_them_back(
    towline: Terminal, lab: Lab, tmp_path: Path
) -> None:
    """The node of the first was lost; the others run on, and what was left of their walltime would end the job."""
    shell = '[ "$TOWLINE_ATTEMPT" -gt 1 ] || sleep 300; echo begun'
    roles: list[dict[str, Any]] = [
        {"name": "actor", "shell": shell, "partition": "cpu"},
        {"name": "learner", "shell": shell, "resources": {"gpus_per_node": 1, "memory": "2G"}},
    ]
    (tmp_path / "job.json").write_text(json.dumps({"name": "torn", "roles": roles, "resources": {"time": "2m"}}))
    job = towline.submit("-f", str(tmp_path / "job.json"))
    towline.until(job, lambda each: each["state"] == "running")
    with fault(lab, "node-crash", "cpu1"):
        towline.until(job, lambda each: len(each["attempts"]) > 1 or each["state"] == "pending")
    assert towline("wait", job).code == 0
    *_, torn, last = towline.job(job)["attempts"]
    assert (torn["cause"], last["cause"]) == ("infrastructure", "")
    assert "only a part of the components" in torn["evidence"]


def test_a_component_that_fails_ends_the_job_with_its_code(towline: Terminal, tmp_path: Path) -> None:
    file = described(tmp_path, '[ "$RANK" = 0 ] || exit 9; sleep 300', "sleep 300")
    done = towline("run", "--json", "-f", file)
    assert done.code == 9, done
    last = done.lines[-1]["job"]["attempts"][-1]
    assert (last["failed_role"], last["failed_rank"], last["exit_source"]) == ("learner", 1, "job")
    assert "component" in towline("status", "two-kinds").out


def test_what_one_component_cannot_have_is_refused(towline: Terminal, tmp_path: Path) -> None:
    (tmp_path / "job.json").write_text(
        json.dumps({"roles": [{"name": "a", "shell": "true"}, {"name": "b", "shell": "true", "partition": "nosuch"}]})
    )
    done = towline("run", "-f", str(tmp_path / "job.json"))
    assert done.code == 65, done
    assert "component 1: lab has no partition nosuch" in done.err
