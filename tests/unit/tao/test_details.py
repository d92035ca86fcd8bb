"""What clients send: read strictly, and never what the server writes."""

from __future__ import annotations

from typing import Any

import pytest

from towline.models.errors import SpecError
from towline.models.job import Attempt, JobRecord, JobState
from towline.tao.details import BackendDetails, CloudSpecificDetails, SlurmMetadata

WORKSPACE: dict[str, Any] = {"cloud_type": "slurm", "slurm_user": "alice", "slurm_hostname": ["login1", "login2.site"]}
HOSTILE = ("-oProxyCommand=x", "a\nb", 'a"b', "a'b", "a b", "a;b", "$(x)", "`x`", "a\x00", "a\x1b[2J", "", "a" * 2000)


def test_what_the_contract_shows_is_read() -> None:
    details = BackendDetails.from_client({"backend_type": "slurm", "partition": "polar,polar3", "cluster_name": "one"})
    assert details.partition == "polar,polar3"
    workspace = CloudSpecificDetails.from_client({**WORKSPACE, "base_results_dir": "/lustre/alice"})
    assert workspace.variables() == {
        "SLURM_USER": "alice",
        "SLURM_HOSTNAME": "login1,login2.site",
        "SLURM_BASE_RESULTS_DIR": "/lustre/alice",
    }
    for model in (BackendDetails, CloudSpecificDetails, SlurmMetadata):
        assert model.model_json_schema()["additionalProperties"] is False


@pytest.mark.parametrize("value", HOSTILE)
@pytest.mark.parametrize("key", ["partition", "cluster_name"])
def test_hostile_details_are_refused(key: str, value: str) -> None:
    with pytest.raises(SpecError, match="described") as error:
        BackendDetails.from_client({"backend_type": "slurm", key: value})
    assert key in error.value.why


@pytest.mark.parametrize("value", HOSTILE)
def test_hostile_workspaces_are_refused(value: str) -> None:
    for wrong in ({"slurm_user": value}, {"slurm_hostname": [value]}, {"base_results_dir": value}):
        with pytest.raises(SpecError):
            CloudSpecificDetails.from_client({**WORKSPACE, **wrong})


@pytest.mark.parametrize(
    "values",
    [
        {"backend_type": "lepton"},
        {"backend_type": "slurm", "job_dir": "/tmp"},
        {"backend_type": "slurm", "partition": 5},
        {},
    ],
)
def test_other_keys_and_kinds_are_refused(values: dict[str, Any]) -> None:
    with pytest.raises(SpecError):
        BackendDetails.from_client(values)


@pytest.mark.parametrize("path", ["/", "//", "/a/../b", "relative", "/a:b"])
def test_base_directories_are_absolute_and_not_the_root(path: str) -> None:
    with pytest.raises(SpecError):
        CloudSpecificDetails.from_client({**WORKSPACE, "base_results_dir": path})


def test_only_the_server_says_what_slurm_has() -> None:
    own = {"slurm_job_id": "1", "job_dir": "/lustre/x"}
    with pytest.raises(SpecError, match="slurm_metadata"):
        BackendDetails.from_client({"backend_type": "slurm", "slurm_metadata": own})
    attempts = (Attempt(1, "41", slurm_state="NODE_FAIL"), Attempt(2, "42"))
    job = JobRecord("m3k9w2x4p", "tao-job", "tao", JobState.RUNNING, "/lustre/jobs/m3k9w2x4p", 0.0, attempts)
    details = BackendDetails.from_client({"backend_type": "slurm"})
    assert details.with_job(job).model_dump(mode="json")["slurm_metadata"] == {
        "slurm_job_id": "42",
        "job_dir": "/lustre/jobs/m3k9w2x4p",
        "retry_count": 1,
        "failed_slurm_job_ids": ["41"],
    }
    nothing = JobRecord("m3k9w2x4p", "tao-job", "tao", JobState.SUBMITTING, "/x", 0.0)
    assert details.with_job(nothing).slurm_metadata is None, "not before sbatch has answered"
