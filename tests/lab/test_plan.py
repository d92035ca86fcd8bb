"""From a spec to what Slurm has: directives that arrive, plans that are sent as they are shown."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.lab.faulty import fault
from tests.lab.terminal import Terminal
from towline.engine.facade import Cluster
from towline.lab import Lab
from towline.models.sbatch_options import is_known
from towline.models.spec import JobSpec

BUSYBOX = "/lustre/images/busybox.sqsh"

EVERYTHING = """\
image: /lustre/images/busybox.sqsh
command: [sh, -c, "echo $GREETING"]
name: everything
resources:
  nodes: 2
  gpus: 8
  gpu_type: h100
  tasks_per_node: 2
  cpus_per_task: 3
  memory_per_cpu: 100M
  time: 4m
partition: [batch, short]
account: research
qos: normal
nodelist: node[2-3]
exclude: node1
env: {GREETING: a 'b' $c, RATIO: 0.10}
secrets: []
mounts: [/lustre/images:/pictures:ro]
workdir: /pictures
inputs: {/data: "lustre:///lustre/images"}
begin: +2h
deadline: now+2days
signal: USR1
grace: 2m
restart: never
retries: 3
resume: {checkpoints: "*.pt", args: [--resume]}
mail: {user: alice@example.org, types: [END, TIME_LIMIT_90]}
comment: '{"reaper": {"minutes": "60"}}'
labels: {project: moon}
sbatch: {switches: 1, nice: 7, contiguous: }
"""


ARRIVED = {
    "Account": "research",
    "QOS": "normal",
    "Partition": "batch,short",
    "NumNodes": "2-2",
    "NumTasks": "4",
    "NtasksPerN:B:S:C": "2:0:*:*",
    "CPUs/Task": "3",
    "MinMemoryCPU": "100M",
    "TresPerNode": "gres:gpu:h100:4",
    "TimeLimit": "00:04:00",
    "ReqNodeList": "node[2-3]",
    "ExcNodeList": "node1",
    "Requeue": "0",
    "Nice": "7",
    "Contiguous": "1",
    "Reason": "BeginTime",
    "Comment": '{"reaper": {"minutes": "60"}}',
    "MailUser": "alice@example.org",
    "MailType": "END,TIME_LIMIT_90",
}


@pytest.fixture
def towline(lab: Lab, tmp_path: Path) -> Terminal:
    return Terminal(tmp_path / "state")


def shown(lab: Lab, slurm_id: str) -> dict[str, str]:
    """What Slurm has of a job: name → value."""
    text = lab.run_on("login1", ["scontrol", "--oneliner", "show", "job", slurm_id], user="alice").stdout
    return dict(re.findall(r"(\S+?)=(.*?)(?=\s\S+?=|\s*$)", text))


def test_every_key_of_a_file_arrives_in_slurm(towline: Terminal, lab: Lab, tmp_path: Path) -> None:
    file = tmp_path / "job.yaml"
    file.write_text(EVERYTHING)
    job = towline.submit("-f", str(file), "--name", "every-thing")
    found = shown(lab, towline.job(job)["slurm_ids"][0])
    towline("cancel", job)
    assert {name: found.get(name, "").strip() for name in ARRIVED} == ARRIVED
    assert found["JobName"] == f"every-thing-{job}-a1"
    assert found["Deadline"] > found["StartTime"] > found["SubmitTime"]
    assert found["Switches"].startswith("1@")
    text = lab.run_on("login1", ["cat", f"{towline.job(job)['directory']}/job.json"], user="alice").stdout
    assert '"retries": 3' in text
    assert '"project": "moon"' in text


def test_a_job_asks_for_the_whole_node_when_it_needs_all_gpus(towline: Terminal, lab: Lab) -> None:
    job = towline.submit("--gpus", "8", "--begin", "+1h", "--image", BUSYBOX, "--", "true")
    found = shown(lab, towline.job(job)["slurm_ids"][0])
    towline("cancel", job)
    assert (found["OverSubscribe"], found["CPUs/Task"], found["TimeLimit"]) == ("NO", "32", "01:00:00")


def test_the_ranks_are_warned_before_the_time_is_over(towline: Terminal) -> None:
    script = "trap 'echo saved; exit 5' USR1; while :; do sleep 1; done"
    # Slurm may be half a minute early, and the ranks have to be there by then.
    warning = ("--time", "2m", "--signal", "USR1", "--grace", "75s")
    words = ["--image", BUSYBOX, "--nodes", "2", *warning]
    done = towline("run", *words, "--shell", script)
    assert done.code == 5, done
    assert "saved" in done.out


def test_a_plan_is_sent_byte_for_byte_as_it_is_shown(
    lab: Lab, towline: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOWLINE_STATE_DIR", str(towline.state))
    spec = JobSpec.build(
        shell="true", image=BUSYBOX, resources={"gpus": 16, "time": "5m"}, env={"A": "é 'x'"}, begin="+1h"
    )
    with Cluster.open("lab") as cluster:
        plan = cluster.plan(spec, look=True)
        assert plan.failures == ()
        job = cluster.submit(spec, plan)
        try:
            for path, content in plan.files.items():
                sent = lab.run_on("login1", ["cat", f"{plan.directory}/{path}"], user="alice").stdout
                assert sent.encode() == content, path
            found = shown(lab, job.record.slurm_ids[0])
            assert found["JobName"] == plan.token
            written = lab.run_on(
                "login1", ["scontrol", "write", "batch_script", job.record.slurm_ids[0], "-"], user="alice"
            ).stdout
            assert written.rstrip("\n") == plan.script.rstrip("\n")
        finally:
            job.cancel()


def test_a_plan_has_a_verdict_for_everything_and_says_when_the_job_would_start(towline: Terminal) -> None:
    done = towline(
        "plan", "--json", "--image", BUSYBOX, "--gpus", "16", "--time", "30m", "--begin", "+1h", "--", "true"
    )
    assert done.code == 0, done
    plan: dict[str, Any] = done.json["plan"]
    assert {check["verdict"] for check in plan["checks"]} == {"ok"}
    assert {"account", "qos", "partition", "image", "paths", "space", "slurm", "time"} <= {
        check["name"] for check in plan["checks"]
    }
    assert 3000 < plan["estimate"]["start_in"] < 4000
    assert plan["estimate"]["fitting"] == 4
    assert plan["gpu_hours"] == 8
    assert "16 GPUs are 2 whole nodes of 8" in plan["notes"]


def test_a_plan_says_what_is_wasted_and_how_long_such_jobs_waited(towline: Terminal) -> None:
    words = ["--image", BUSYBOX, "--gpus", "12", "--", "true"]
    assert towline("run", *words).code == 0
    text = towline("plan", *words)
    assert text.code == 0, text
    assert "your last job like this waited" in text.out
    assert "4 of 16 GPUs are more than was asked for" in text.out
    assert "the walltime is the default of partition batch" in text.out


def test_slurms_own_refusal_and_missing_paths_fail_the_plan_together(towline: Terminal) -> None:
    words = ["--image", BUSYBOX, "--nodelist", "node9", "--mount", "/nosuch", "--", "true"]
    done = towline("plan", "--json", *words)
    assert done.code == 65, done
    failing = {check["name"]: check["evidence"] for check in done.json["plan"]["checks"] if check["verdict"] == "fails"}
    assert set(failing) == {"paths", "slurm"}
    assert "Invalid node name" in failing["slurm"]
    assert done.json["plan"]["estimate"]["start_in"] is None  # it would never start


def test_every_option_of_sbatch_has_a_verdict(lab: Lab) -> None:
    told = lab.run_on("login1", ["sbatch", "--help"], user="alice").stdout
    names = set(re.findall(r"--([a-z][a-z0-9-]*)", told))
    assert len(names) > 80
    assert [name for name in names if not is_known(name)] == []


@pytest.mark.parametrize("style", ["gres", "gres-typed", "gpus-per-node"])
def test_slurm_takes_each_way_to_ask_for_gpus(towline: Terminal, style: str) -> None:
    towline.environment["TOWLINE_GPU_REQUEST"] = style
    plan = towline("plan", "--json", "--image", BUSYBOX, "--gpus", "4", "--sbatch", "switches=1", "--", "true").json[
        "plan"
    ]
    typed = "h100:" if style == "gres-typed" else ""
    wanted = "--gpus-per-node=4" if style == "gpus-per-node" else f"--gres=gpu:{typed}4"
    assert f"#SBATCH {wanted}\n" in plan["files"]["script/batch"]
    assert {check["name"]: check["verdict"] for check in plan["checks"]}["slurm"] == "ok"


def test_what_accounting_does_not_tell_keeps_no_job_from_being_planned(towline: Terminal, lab: Lab) -> None:
    with fault(lab, "slurmdbd-down"):
        done = towline("plan", "--json", "--image", BUSYBOX, "--account", "research", "--qos", "normal", "--", "true")
    assert done.code == 0, done
    told = {check["name"] for check in done.json["plan"]["checks"] if check["verdict"] == "cannot-tell"}
    assert told == {"account", "qos", "limits"}
