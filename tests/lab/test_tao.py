"""A script for TAO's SDK on real nodes: the calls of that SDK, with what it gets wrong put right."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.lab.tao_jobs import BASE, IMAGE, PATIENCE, ended, text_of, until
from tests.lab.terminal import Terminal
from towline import Attempt, Cluster, JobRecord, JobSpec, JobState
from towline.engine.store import Store
from towline.lab import Lab
from towline.lab.layout import ALICE
from towline.models.ids import new_job_id
from towline.tao.action_workflow import ActionWorkflow
from towline.tao.models import Job
from towline.tao.platforms.slurm import SlurmSDK
from towline.tao.settings import tao_profile


def words(sdk: SlurmSDK) -> dict[str, str]:
    return {row["job_id"]: row["status"] for row in sdk.list_jobs()}


RANKS = """
set -o pipefail
[[ $BASH_VERSION ]] || exit 1
echo "$NODE_RANK/$WORLD_SIZE $NUM_GPU_PER_NODE $MASTER_ADDR:$MASTER_PORT" | tee /results/$NODE_RANK
date >/work/logs/$NODE_RANK
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
        outputs=["/results/", "/work/logs"],
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
    assert {"notes.txt", "results", "work-logs"} <= set(sdk.list_path(results))
    assert sdk.list_path(f"{results}/results") == sdk.list_path(f"{results}/work-logs") == ["0", "1"]
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


def test_a_failure_is_one_whatever_the_container_says(sdk: SlurmSDK, lab: Lab) -> None:
    failed: list[str] = []
    told = threading.Event()

    def on_error(job: Job) -> None:
        failed.append(job.id)
        told.set()

    plain = sdk.create_job(
        IMAGE, "[ -z $CUDA_VISIBLE_DEVICES ] && echo no GPUs; exit 124", gpu_count=0, hooks={"on_error": on_error}
    )
    report = '{"status": "FAILURE", "message": "loss is NaN"}'
    quiet = sdk.create_job(IMAGE, f"echo '{report}' >/out/status.json", gpu_count=0, outputs=["/out"])
    assert ended(sdk, plain.id) == "Error", "124 is a failure like any other"
    assert told.wait(PATIENCE)
    assert failed == [plain.id]
    slurm_id = (sdk.get_job(plain.id) or {})["slurm_job_id"]
    asked = f"scontrol --oneliner show job {slurm_id} | grep -o ' JobState=[A-Z]* .* ExitCode=[0-9:]*'"
    slurm = lab.run_on("login1", ["sh", "-c", asked], check=True).stdout.split()
    assert (slurm[0], slurm[-1]) == ("JobState=FAILED", "ExitCode=124:0"), "no job that waits for its success starts"
    assert ended(sdk, quiet.id) == "Error"
    assert "loss is NaN" in sdk.get_job_status(quiet.id).message
    found = sdk.get_failure_analysis(plain.id)
    assert found is not None
    assert found["err_class"] == "ERR_PROGRAM"
    assert found["suggestion"]
    assert found["exit_code"] == 124
    assert [event["node_event_name"] for event in found["job_failure_by_node_event"]] == ["FAILED"]


def no_background(*_: object) -> Callable[[], None]:
    return threading.Event().set


HELD = 50
SBATCH = 'sbatch --parsable --hold --job-name=held --partition=batch --output=/dev/null --chdir="$each" --wrap true'
HOLD = f"for each; do {SBATCH} || exit; done"


@pytest.fixture
def held(tao_variables: dict[str, str], lab: Lab) -> Iterator[list[str]]:
    """Jobs that wait, known here as if another process had submitted them."""
    profile = tao_profile(3600)
    job_ids = [new_job_id(time.time() - number) for number in range(HELD)]
    directories = [f"{profile.root}/jobs/{job_id}" for job_id in job_ids]
    words = ["sh", "-c", HOLD, "sh", *directories]
    slurm_ids = lab.run_on("login1", words, user=ALICE.name, check=True).stdout.split()
    try:
        store = Store(Path(tao_variables["TOWLINE_STATE_DIR"]))
        waiting = zip(job_ids, directories, slurm_ids, strict=True)
        records = [_waiting(job_id, profile.name, directory, slurm_id) for job_id, directory, slurm_id in waiting]
        for record in records:
            store.intend(record, JobSpec(command=("true",)))
        store.close()
        yield [record.id for record in records]
    finally:
        lab.run_on("login1", ["scancel", *slurm_ids], user=ALICE.name)


def _waiting(job_id: str, cluster: str, directory: str, slurm_id: str) -> JobRecord:
    attempts = (Attempt(slurm_id=slurm_id),)
    return JobRecord(job_id, "held", cluster, JobState.PENDING, directory, time.time(), attempts)


def logins(lab: Lab) -> int:
    return sum(log.read_text().count("Accepted publickey") for log in lab.paths.log.glob("sshd-login*.log"))


def test_what_each_call_costs(held: list[str], lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Cluster, "attend", no_background)  # its looks would count, too
    threads, before = set(threading.enumerate()), logins(lab)
    with SlurmSDK(poll_interval=3600) as sdk:
        assert sdk.calls == 0, "making one asks nothing"
        first = sdk.create_job(IMAGE, "echo started; sleep 300", gpu_count=0)
        counts: dict[str, int] = {}

        def counted(name: str, call: Callable[[], object]) -> object:
            before = sdk.calls
            result = call()
            counts[name] = sdk.calls - before
            return result

        second = counted("create_job", lambda: sdk.create_job(IMAGE, "sleep 300", gpu_count=0))
        assert isinstance(second, Job)
        until(lambda: sdk.get_job_status(first.id).status == "Running")
        until(lambda: "started" in sdk.get_job_logs(first.id))
        counted("status of both", lambda: [sdk.get_job_status(each.id) for each in (first, second)])
        assert counted("logs", lambda: sdk.get_job_logs(first.id, tail=1)) == "started\n"
        counted("poll", sdk.refresh)
        assert len(sdk.list_jobs()) == 2, "and only the SDK's own are listed as its own"
        assert counted("status of 50", lambda: {sdk.get_job_status(each).status for each in held}) == {"Pending"}
        counted("list_jobs", sdk.list_jobs)
        for job in (first, second):
            assert counted("cancel", lambda job=job: sdk.cancel_job(job.id))
            assert sdk.get_job_status(job.id).status in ("Canceling", "Canceled")
            assert ended(sdk, job.id) == "Canceled"
            assert sdk.cancel_job(job.id), "one that is over counts as cancelled"
    assert counts.pop("status of both") <= 1, "none when the last look was just now"
    assert counts.pop("status of 50") <= 1
    assert logins(lab) <= before + 1, "all over one connection, which an earlier test may have left open"
    assert counts == {"create_job": 1, "logs": 1, "poll": 1, "list_jobs": 0, "cancel": 2}
    sdk.close()
    assert set(threading.enumerate()) == threads, "nothing is left behind"


SCRIPT = """
import sys
from tao_sdk.platforms.slurm import SlurmSDK
from tao_sdk.action_workflow import ActionWorkflow

sdk = SlurmSDK(poll_interval=1)
job = sdk.create_job(image=sys.argv[1], command="echo begun; until [ -e /go/on ]; do sleep 0.2; done", gpu_count=0,
                     mounts=[sys.argv[3] + ":/go"])
workflow = ActionWorkflow(sys.argv[2], "run", "now")
workflow.write_submission(job, specs={}, script_runner={})
print(job.id, flush=True)
"""


def test_an_unchanged_script_and_whoever_goes_on_after_it(
    tao_variables: dict[str, str], lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    go = f"/lustre/{ALICE.name}/tao-go"
    lab.run_on("login1", ["mkdir", "-p", go], user=ALICE.name, check=True)
    (tmp_path / "train.py").write_text(SCRIPT)
    done = Terminal(tmp_path / "state", tao_variables)(
        "tao", "run", str(tmp_path / "train.py"), IMAGE, str(tmp_path), go
    )
    assert done.code == 0, done
    job_id = done.out.strip()
    called: list[str] = []
    told = threading.Event()

    def complete(job: Job) -> None:
        called.append(job.id)
        told.set()

    with SlurmSDK(poll_interval=1) as sdk:
        assert words(sdk)[job_id] in ("Pending", "Running")
        sdk.add_hooks(job_id, {"on_complete": complete})
        until(lambda: words(sdk)[job_id] == "Running")
        lab.run_on("login1", ["touch", f"{go}/on"], user=ALICE.name, check=True)
        assert told.wait(PATIENCE), "the second process watches the job of the first"
    with SlurmSDK(poll_interval=1) as sdk:
        sdk.add_hooks(job_id, {"on_complete": complete})
    assert called == [job_id], "and a third one does not tell it again"
    monkeypatch.setenv("TOWLINE_STATE_DIR", str(tmp_path / "another-machine"))
    with SlurmSDK() as sdk:
        workflow = ActionWorkflow.from_workspace(tmp_path / "run" / "now")
        for _ in range(2):
            assert workflow.sync_from_sdk(sdk, job_id).status == "Complete"
        assert sdk.get_job_status("a00000000").status == "Unknown"
    assert workflow.active_jobs == ()
    assert workflow.logs_path.read_text() == "begun\n"
    events = [json.loads(line)["status"] for line in workflow.events_path.read_text().splitlines()]
    assert (events[0], events[-1], events.count("Complete")) == ("Pending", "Complete", 1)
