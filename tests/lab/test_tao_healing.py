"""A job of TAO's SDK whose node is lost: it goes on elsewhere, and whoever watches it then hears of it once."""

from __future__ import annotations

import threading

from tests.lab.faulty import fault
from tests.lab.tao_jobs import IMAGE, PATIENCE, ended, until
from towline.lab import Lab
from towline.tao.models import Job
from towline.tao.monitor import Hooks
from towline.tao.platforms.slurm import SlurmSDK

COMMAND = """
echo "attempt $TOWLINE_ATTEMPT on $SLURMD_NODENAME"
[ "$TOWLINE_ATTEMPT" -gt 1 ] || sleep 600
"""


def test_a_node_that_is_lost_and_a_process_that_watches_on(tao_variables: dict[str, str], lab: Lab) -> None:
    called: list[tuple[str, str]] = []
    told = threading.Event()

    def complete(job: Job) -> None:
        called.append(("complete", job.id))
        told.set()

    def failed(job: Job) -> None:
        called.append(("error", job.id))

    hooks: Hooks = {"on_complete": complete, "on_error": failed}
    with SlurmSDK(poll_interval=1) as sdk:
        job = sdk.create_job(IMAGE, COMMAND, gpu_count=1, hooks=hooks)
        until(lambda: "attempt 1 on " in sdk.get_job_logs(job.id))
        node = sdk.get_job_logs(job.id).split()[-1]
        slurm_id = (sdk.get_job(job.id) or {})["slurm_job_id"]
        assert sdk.get_failure_analysis(job.id) is None
    with fault(lab, "node-crash", node), SlurmSDK(poll_interval=1) as sdk:
        assert [each["job_id"] for each in sdk.list_jobs("Running")] == [job.id], (
            "known to a new process as it was left"
        )
        sdk.add_hooks(job.id, hooks)
        assert ended(sdk, job.id) == "Complete"
        assert told.wait(PATIENCE)
        log = sdk.get_job_logs(job.id).split()
        assert log[:3] == ["attempt", "2", "on"]
        assert log[3] != node, "it has gone on elsewhere"
        row = sdk.get_job(job.id) or {}
        assert row["slurm_metadata"]["retry_count"] == 1
        assert slurm_id in (row["slurm_job_id"], *row["slurm_metadata"]["failed_slurm_job_ids"])
        found = sdk.get_failure_analysis(job.id)
    assert called == [("complete", job.id)], "an attempt that was lost is no error of the job"
    assert found is not None
    assert (found["err_class"], found["retriable"]) == ("ERR_INFRA", True)
    (event,) = found["job_failure_by_node_event"]
    assert (event["node_event_name"], event["node"]) == ("NODE_FAIL", node)
    assert f"attempt 1 (Slurm job {slurm_id})" in event["message"]
    with SlurmSDK(poll_interval=1) as sdk:
        sdk.add_hooks(job.id, hooks)
        assert sdk.get_job_status(job.id).status == "Complete"
    assert called == [("complete", job.id)], "and it is not told again"
