"""`ActionWorkflow`: the folder of a run, from which anybody can see what became of it and go on watching it.

    <root>/<run name>/<timestamp>/
        metadata.json           what the run is, as its owner describes it
        status.json             its jobs as they are now; `job` and `job_status` are of the one that changed last
        active_jobs.json        the jobs that have not ended
        status_events.jsonl     every change, once, oldest first
        latest_logs.txt, failure_analysis.json

Files appear whole, and several processes may write: a lock in the folder keeps them apart. What somebody else has left
half written or otherwise unreadable counts as not there.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
from collections.abc import Generator, Mapping
from dataclasses import asdict, is_dataclass
from datetime import date, datetime
from enum import Enum
from pathlib import Path, PurePath
from typing import Any, Protocol, cast

from towline.engine.redaction import redacted
from towline.models.errors import SpecError
from towline.tao.files import write_whole
from towline.tao.models import JobStatus, now
from towline.tao.words import TERMINAL

_OF_JOBS = ("backend_job_id", "network_arch", "action", "workspace_id", "created_at")
_LOCK = ".lock"

Fields = dict[str, Any]


class Sdk(Protocol):
    """What is asked of an SDK."""

    def get_job_status(self, job_id: str) -> JobStatus: ...  # noqa: D102

    def get_job_logs(self, job_id: str, tail: int | None = None) -> str | None: ...  # noqa: D102

    def get_failure_analysis(self, job_id: str) -> Mapping[str, Any] | None: ...  # noqa: D102


class ActionWorkflow:
    """The folder of one run.

    Args:
        root_dir: the folder of all runs.
        run_name: name of the run.
        timestamp: name of this go at it.

    Attributes:
        workspace: the folder; made when it is missing.

    Raises:
        SpecError: a name would lead out of the folder of all runs.
    """

    def __init__(self, root_dir: str | os.PathLike[str], run_name: str, timestamp: str) -> None:
        for name in (run_name, timestamp):
            if not name or name.startswith("/") or ".." in name.split("/") or "\0" in name:
                raise SpecError(
                    f"{name!r} is no name of a run", fix="Name it by a folder below the folder of all runs."
                )
        self.root_dir = Path(root_dir)
        self.run_name = run_name
        self.timestamp = timestamp
        self.workspace = self.root_dir / run_name / timestamp
        self.workspace.mkdir(parents=True, exist_ok=True)
        self.metadata_path = self.workspace / "metadata.json"
        self.status_path = self.workspace / "status.json"
        self.events_path = self.workspace / "status_events.jsonl"
        self.active_jobs_path = self.workspace / "active_jobs.json"
        self.logs_path = self.workspace / "latest_logs.txt"
        self.failure_analysis_path = self.workspace / "failure_analysis.json"

    @classmethod
    def from_workspace(cls, workspace: str | os.PathLike[str]) -> ActionWorkflow:
        """The run that a folder is of, also one of another process or machine."""
        place = Path(workspace).absolute()
        return cls(place.parent.parent, place.parent.name, place.name)

    def write_metadata(self, **metadata: Any) -> None:
        """Describe the run; values of secrets that this process knows are left out, as everywhere in the folder."""
        with self._locked():
            _write(self.metadata_path, {"updated_at": now(), **_plain(metadata)})

    def write_submission(self, job: Any, specs: Mapping[str, Any], script_runner: Mapping[str, Any]) -> None:
        """Note a job of the run; a run may have several."""
        about = cast("Fields", _plain(job))
        job_id = str(getattr(job, "id", ""))
        status = str(getattr(job, "status", "") or "Pending")
        with self._locked():
            known = _read_run(self.status_path)
            news = self._noted(known, job_id, status, "")
            submitted = {"job": about, "specs": _plain(specs), "script_runner": _plain(script_runner)}
            jobs = {**known.get("jobs", {}), job_id: {**submitted, "job_status": _status(job_id, status, "", "")}}
            _write(self.status_path, {**known, **submitted, "jobs": jobs, "updated_at": now()})
            self._write_active(jobs)
            if news:
                names = {"job_id": job_id, "backend_job_id": getattr(job, "backend_job_id", ""), "status": status}
                self._append_event({"event": "submitted", **names})

    def sync_status(
        self, status: Any, message: str = "", logs: str | None = "", failure_analysis: Mapping[str, Any] | None = None
    ) -> None:
        """Note the state of a job; an event is appended when it is another one than before.

        `Unknown` ends nothing: the job stays among those that go on. The word of an end never changes.
        """
        job_id, word = str(getattr(status, "job_id", "")), str(getattr(status, "status", ""))
        if not job_id or not word:
            raise SpecError(f"{status!r} is no status of a job", fix="Give what `get_job_status` returns.")
        message = message or str(getattr(status, "message", ""))
        with self._locked():
            known = _read_run(self.status_path)
            if self._noted(known, job_id, word, message):
                self._note(known, job_id, _status(job_id, word, message, str(getattr(status, "updated_at", ""))))
                self._append_event({"event": "status", "job_id": job_id, "status": word, "message": message})
            if logs:
                write_whole(self.logs_path, redacted(logs))
            if failure_analysis:
                _write(self.failure_analysis_path, _plain(failure_analysis))

    def sync_from_sdk(self, sdk: Sdk, job_id: str, tail: int = 200) -> Any:
        """Ask for a job and note what it is; the result is its status.

        Why a job failed is asked for only when it did.
        """
        status = sdk.get_job_status(job_id)
        logs = sdk.get_job_logs(job_id, tail=tail)
        failed = status.status == "Error"
        self.sync_status(status, logs=logs, failure_analysis=sdk.get_failure_analysis(job_id) if failed else None)
        return status

    @property
    def active_jobs(self) -> tuple[str, ...]:
        """The ids of the jobs that have not ended, as far as is noted."""
        jobs = cast("dict[str, Fields]", _read_run(self.status_path)["jobs"])
        return tuple(name for name, job in jobs.items() if job["job_status"].get("status") not in TERMINAL)

    # --- Files ---

    def _noted(self, known: Fields, job_id: str, word: str, message: str) -> bool:
        """Whether this is news: neither what is noted already nor a word after that of an end."""
        before = known.get("jobs", {}).get(job_id, {}).get("job_status", {})
        if before.get("status") in TERMINAL:
            return False
        return (word, message) != (before.get("status"), before.get("message"))

    def _note(self, known: Fields, job_id: str, status: Fields) -> None:
        job = known.get("jobs", {}).get(job_id, {"job": {"job_id": job_id}})
        job = {**job, "job": {**job["job"], "status": status["status"]}, "job_status": status}
        jobs = {**known.get("jobs", {}), job_id: job}
        newest = {name: job[name] for name in ("job", "specs", "script_runner", "job_status") if name in job}
        _write(self.status_path, {**known, **newest, "jobs": jobs, "updated_at": now()})
        self._write_active(jobs)

    def _write_active(self, jobs: Mapping[str, Fields]) -> None:
        active = [
            {
                "job_id": job_id,
                **{name: job["job"].get(name, "") for name in _OF_JOBS},
                "status": job["job_status"].get("status"),
                "updated_at": now(),
            }
            for job_id, job in jobs.items()
            if job["job_status"].get("status") not in TERMINAL
        ]
        write_whole(self.active_jobs_path, json.dumps(active, indent=2, sort_keys=True) + "\n")

    def _append_event(self, event: Fields) -> None:
        """A whole line in one write: a reader never sees a part of it, and one that was cut off spoils no other."""
        line = redacted(json.dumps({"timestamp": now(), **event}, sort_keys=True)) + "\n"
        handle = os.open(self.events_path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o644)
        try:
            size = os.fstat(handle).st_size
            cut = size > 0 and os.pread(handle, 1, size - 1) != b"\n"
            os.write(handle, ("\n" * cut + line).encode())
        finally:
            os.close(handle)

    @contextlib.contextmanager
    def _locked(self) -> Generator[None, None, None]:
        handle = os.open(self.workspace / _LOCK, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            yield
        finally:
            os.close(handle)


def _status(job_id: str, word: str, message: str, when: str) -> Fields:
    return {"job_id": job_id, "status": word, "message": message, "updated_at": when or now()}


def _write(path: Path, values: object) -> None:
    write_whole(path, redacted(json.dumps(values, indent=2, sort_keys=True)) + "\n")


def _read_run(path: Path) -> Fields:
    """A run's status, its `jobs` as they can be used; a job that TAO's own SDK has noted is one of them."""
    try:
        known = _fields(json.loads(path.read_text(encoding="utf-8")))
    except (FileNotFoundError, ValueError, RecursionError):
        known = {}
    only = _fields(known.get("job"))
    given = _fields(known.get("jobs")) or {str(only.get("job_id") or only.get("id") or ""): known}
    jobs = {name: _fields(job) for name, job in given.items() if name and _fields(_fields(job).get("job_status"))}
    named = {name: {**job, "job": {"job_id": name, **_fields(job.get("job"))}} for name, job in jobs.items()}
    kept = ("job", "specs", "script_runner", "job_status")
    return {**known, "jobs": {name: {key: job[key] for key in kept if key in job} for name, job in named.items()}}


def _fields(value: object) -> Fields:
    return cast("Fields", value) if isinstance(value, dict) else {}


def _plain(value: Any) -> Any:
    """The value as JSON can hold it; what it cannot hold becomes text."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, Enum):
        return _plain(value.value)
    if isinstance(value, (date, datetime)):
        return value.isoformat()
    if isinstance(value, PurePath):
        return str(value)
    if isinstance(value, Mapping):
        return {str(key): _plain(each) for key, each in cast("Mapping[object, Any]", value).items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [_plain(each) for each in cast("list[Any]", value)]
    if hasattr(value, "to_dict"):
        return _plain(value.to_dict())
    if is_dataclass(value) and not isinstance(value, type):
        return _plain(asdict(value))
    return _plain(vars(value)) if hasattr(value, "__dict__") else str(value)
