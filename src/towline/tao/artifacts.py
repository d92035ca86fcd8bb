"""Which files on the cluster are a job's own, by its id."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from towline.models.errors import SpecError, UsageError
from towline.models.ids import is_job_id
from towline.models.parts import shared_path
from towline.tao.words import TERMINAL

TERMINAL_JOB_STATUSES = frozenset(word.lower() for word in TERMINAL)


def validate_job_id(job_id: str) -> str:
    """A job's id, which may stand in a path.

    Raises:
        SpecError: it is none.
    """
    if not is_job_id(job_id):
        raise SpecError(f"{job_id!r} is no id of a job", fix="See the known jobs with `list_jobs()`.")
    return job_id


def require_terminal_job(entry: Mapping[str, Any] | None) -> None:
    """See that a job has ended, so that nobody writes to its files any more.

    Raises:
        UsageError: it has not, or is not known.
    """
    status = str((entry or {}).get("status", "")).lower()
    if status not in TERMINAL_JOB_STATUSES:
        raise UsageError(
            f"the job has not ended (it is {status or 'not known'})", fix="Cancel it, or wait for its end."
        )


def job_scoped_remote_path(results_dir: str, job_id: str, scheme: str = "lustre") -> str:
    """The path that a results directory's `lustre://` name means, if it is that job's own.

    Raises:
        SpecError: it is another scheme's or another job's.
    """
    path = shared_path(results_dir) if results_dir.startswith((f"{scheme}://", "/")) else None
    if path is None or path.rstrip("/").rpartition("/")[2] != validate_job_id(job_id) or ".." in path.split("/"):
        raise SpecError(f"{results_dir!r} is not where the results of job {job_id} are")
    return path.rstrip("/")
