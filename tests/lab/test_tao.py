"""A script for TAO's SDK on real nodes: the calls of that SDK, with what it gets wrong put right."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from towline.lab import Lab
from towline.lab.layout import ALICE, LOGINS
from towline.tao.models import Job
from towline.tao.platforms.slurm import SlurmSDK

BASE = f"/lustre/{ALICE.name}/tao"
IMAGE = "/lustre/images/python.sqsh"
PATIENCE = 120.0
TERMINAL = ("Complete", "Error", "Canceled")


@pytest.fixture
def variables(lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """TAO's variables for the lab, and no other settings of Towline's."""
    values = {
        "SLURM_USER": ALICE.name,
        "SLURM_HOSTNAME": LOGINS[0].aliases[0],
        "SLURM_PARTITION": "batch",
        "SLURM_BASE_RESULTS_DIR": BASE,
        "SLURM_CPUS_PER_TASK": "1",
        "SLURM_TIME_HOURS": "0.1",
        "SLURM_USE_SQSH": "false",
        "SSH_KEY_PATH": str(lab.paths.key(ALICE)),
        "HF_TOKEN": "hf_sesame_open",
        "HOME": str(tmp_path),
        "TOWLINE_STATE_DIR": str(tmp_path / "state"),
        "TOWLINE_KNOWN_HOSTS_FILE": str(lab.paths.known_hosts),
    }
    for name, value in values.items():
        monkeypatch.setenv(name, value)
    return values


@pytest.fixture
def sdk(variables: dict[str, str]) -> Iterator[SlurmSDK]:
    with SlurmSDK(poll_interval=1) as made:
        yield made


def until(there: Callable[[], object]) -> None:
    end = time.monotonic() + PATIENCE
    while not there():
        assert time.monotonic() < end, "it did not come"
        time.sleep(0.2)


def ended(sdk: SlurmSDK, job_id: str) -> str:
    until(lambda: sdk.get_job_status(job_id).status in TERMINAL)
    return sdk.get_job_status(job_id).status


def text_of(lab: Lab, path: str) -> str:
    return lab.run_on("login1", ["cat", path], check=True).stdout


RANKS = """
set -o pipefail
[[ $BASH_VERSION ]] || exit 1
echo "$NODE_RANK/$WORLD_SIZE $NUM_GPU_PER_NODE $MASTER_ADDR:$MASTER_PORT" | tee /results/$NODE_RANK
echo "$PYTHONNOUSERSITE $HF_HOME ${HF_TOKEN:0:3} $LR $(cat /data/set)"
if [ "$NODE_RANK" = 0 ]; then
    mkdir -p "$TAO_API_RESULTS_DIR/$TAO_JOB_ID/epoch_10"
    touch "$TAO_API_RESULTS_DIR/$TAO_JOB_ID"/{epoch_10/part.distcp,model_step_20.pth,notes.txt}
    for epoch in 7 35; do echo "Epoch $epoch/40"; done
fi
"""


def test_a_job_on_two_nodes_with_inputs_outputs_and_hooks(sdk: SlurmSDK, lab: Lab) -> None:
    lab.run_on(
        "login1", ["sh", "-c", f"mkdir -p {BASE}-data && echo 'a set' >{BASE}-data/set"], user="alice", check=True
    )
    called: list[object] = []
    over = threading.Event()

    def passed(_job: Job, epoch: int, epochs: int) -> None:
        called.append((epoch, epochs))

    def complete(done: Job) -> None:
        called.append(done.id)
        over.set()

    job = sdk.create_job(
        IMAGE,
        RANKS,
        gpu_count=1,
        num_nodes=2,
        env_vars={"LR": 0.1},
        account="research",
        mounts=["/etc/hostname:/host:ro"],
        inputs={"/data": f"lustre://{BASE}-data"},
        outputs=["/results/"],
        hooks={"on_complete": complete, "on_epoch_milestone": passed},
    )
    assert ended(sdk, job.id) == "Complete"
    assert over.wait(PATIENCE)
    assert called == [(10, 40), (20, 40), (30, 40), job.id], "no milestone is lost between two looks"
    logs = sdk.get_job_logs(job.id)
    assert "0/2 1 node1:29500\n" in logs, "evaluated in each task"
    assert "1/2 1 node1:29500\n" in logs
    assert f"1 {BASE}/.cache/huggingface hf_ 0.1 a set\n" in logs
    results = sdk.get_job_results_dir(job.id)
    assert results == f"lustre://{BASE}/results/{job.id}"
    assert {"0", "1", "notes.txt"} <= set(sdk.list_path(results))
    assert sdk.get_checkpoints(job.id) == [
        f"{BASE}/jobs/{job.id}/results/{name}" for name in ("model_step_20.pth", "epoch_10")
    ]
    assert sdk.check_path(f"{BASE}-data/set")
    assert not sdk.check_path(f"lustre://{BASE}-data/none")
    assert sdk.get_failure_analysis(job.id) is None
    assert "sesame" not in text_of(lab, f"{BASE}/sbatch/job_{job.id}.sbatch")
    assert json.loads(text_of(lab, f"{BASE}/env/{job.id}.json"))["LR"] == "0.1"
    slurm_id = (sdk.get_job(job.id) or {})["slurm_job_id"]
    assert text_of(lab, f"{BASE}/slurm-logs/tao-job-{job.id}-a1-{slurm_id}/main.out") in logs
    assert sdk.delete_job_artifacts(job.id)
    assert sdk.list_path(results) == []
    assert sdk.get_job_status(job.id).status == "Complete"
