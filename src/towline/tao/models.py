"""`Job`, `JobStatus`, `Checkpoint` and `CredentialError`, with the names and fields that scripts for TAO's SDK use."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from datetime import datetime, timezone

from towline.models.errors import ConfigError


class CredentialError(ConfigError):
    """A variable that says who is meant, where, or by which key is missing."""


def now() -> str:
    """The present as TAO writes times: ISO 8601 in UTC."""
    return datetime.now(timezone.utc).isoformat()


@dataclass
class Job:
    """A job as TAO's SDK hands it out.

    Attributes:
        id: Towline's id; it stays the same however often Slurm starts the job.
        network_arch, action: of TAO's workflows; empty for plain commands.
        workspace_id: `slurm`.
        backend_type: `slurm`.
        status: TAO's word for the state, as it was last known.
        created_at: when it was made, ISO 8601.
        backend_job_id: the job's name in Slurm, as it begins.
        parent_job_id: the job that this one goes on from; empty for none.
        results_dir: where its results are, as `lustre://` path.
        local_results_dir: empty; results are on the cluster.
        base_checkpoint: the checkpoint that it began with; empty for none.
    """

    id: str
    network_arch: str
    action: str
    workspace_id: str
    backend_type: str = ""
    status: str = "Pending"
    created_at: str = field(default_factory=now)
    backend_job_id: str = ""
    parent_job_id: str = ""
    results_dir: str = ""
    local_results_dir: str = ""
    base_checkpoint: str = ""

    def to_dict(self) -> dict[str, str]:
        """The fields as plain values, the id under `job_id`."""
        values = asdict(self)
        return {"job_id": values.pop("id"), **values}


@dataclass
class JobStatus:
    """The state of a job.

    Attributes:
        job_id: its id.
        status: TAO's word.
        message: one sentence more; may be empty.
        updated_at: when this was found out, ISO 8601.
    """

    job_id: str
    status: str
    message: str = ""
    updated_at: str = field(default_factory=now)


@dataclass
class Checkpoint:
    """A checkpoint that a training wrote.

    Attributes:
        path: where it is.
        epoch: the epoch that it is of.
        metric_name, metric_value: what it was measured by.
    """

    path: str
    epoch: int
    metric_name: str = ""
    metric_value: float = 0.0
