"""What `--json` prints. The field names are stable and described in `docs/json.md`."""

from __future__ import annotations

import dataclasses
import json
import sys
from typing import TYPE_CHECKING, Any

from towline.engine.events import PullReport, ResultFile
from towline.engine.redaction import redacted_document
from towline.models.errors import INTERRUPTED, JOB_ENDED_WITHOUT_CODE
from towline.models.job import JobRecord, JobState

if TYPE_CHECKING:
    from towline.models.event import JobEvent
    from towline.models.plan import Plan

Document = dict[str, Any]


def print_document(document: Document) -> None:
    """Print one JSON object as one line of ASCII, so that no terminal and no encoding can be upset by it.

    Secrets are hidden in it, except in a job's log, which is passed on as it is.
    """
    shown = document if document.get("event") == "log" else redacted_document(document)
    sys.stdout.write(json.dumps(shown, ensure_ascii=True) + "\n")
    sys.stdout.flush()


def job_as_dict(record: JobRecord) -> Document:
    """A job, wherever one is printed."""
    return {
        "id": record.id,
        "task": record.task,
        "name": record.name,
        "cluster": record.cluster,
        "state": record.state.value,
        "ended": record.state.ended,
        "note": record.note,
        "command": record.command,
        "directory": record.directory,
        "created": record.created,
        "slurm_ids": list(record.slurm_ids),
        "exit_code": record.exit_code,
        "attempts": [dataclasses.asdict(attempt) for attempt in record.attempts],
        "roles": list(record.roles),
        "tasks": dataclasses.asdict(record.tasks) if record.tasks else None,
        "progress": dataclasses.asdict(record.progress) if record.progress else None,
    }


def event_as_dict(event: JobEvent) -> Document:
    """Something that happened to a job."""
    return {
        "event": event.kind.value,
        "number": event.number,
        "time": event.time,
        "cluster": event.cluster,
        "job_id": event.job_id,
        "job_name": event.job_name,
        "state": event.state.value,
        "attempt": event.attempt,
        "note": event.note,
        "details": dict(event.details),
    }


def exit_status(record: JobRecord) -> int:
    """The exit status of a command that stands for this job: 0, the job's own code, or 72 when it has none."""
    if record.state is JobState.SUCCEEDED:
        return 0
    return record.exit_code or JOB_ENDED_WITHOUT_CODE


def exit_as_dict(record: JobRecord) -> Document:
    """The exit status of a command that stands for this job, and whose it is: the job's or Towline's."""
    own = record.state is JobState.SUCCEEDED or bool(record.exit_code)
    return {"code": exit_status(record), "whose": "job" if own else "towline"}


def towline_exit(code: int) -> Document:
    """An exit status that Towline chose."""
    return {"code": code, "whose": "towline"}


def interrupted() -> Document:
    """The last line of a command that Ctrl-C ended."""
    error = {"code": "interrupted", "exit_status": INTERRUPTED, "what": "interrupted", "why": "", "fix": ""}
    return {"error": error, "exit": towline_exit(INTERRUPTED)}


def plan_as_dict(plan: Plan) -> Document:
    """What a submission would do."""
    return {
        "job_id": plan.job_id,
        "token": plan.token,
        "directory": plan.directory,
        "checks": [
            {"name": each.name, "verdict": each.verdict.value, "evidence": each.evidence, "fix": each.fix}
            for each in plan.checks
        ],
        "required_paths": list(plan.required_paths),
        "files": {path: content.decode(errors="replace") for path, content in plan.files.items()},
        "sbatch": list(plan.sbatch),
        "inputs": [
            {"uri": each.uri, "target": each.target, "path": each.path, "size": each.size, "ready": each.ready}
            for each in plan.inputs
        ],
        "notes": list(plan.notes),
        "gpu_hours": plan.gpu_hours,
        "node_hours": plan.node_hours,
        "facts_asked": plan.facts_asked or None,
        "estimate": dataclasses.asdict(plan.estimate) if plan.estimate else None,
        "spec": plan.spec.model_dump(mode="json"),
    }


def file_as_dict(file: ResultFile) -> Document:
    """One file of a job's results."""
    return {"path": file.path, "size": file.size, "modified": file.modified, "readable": file.readable}


def report_as_dict(report: PullReport) -> Document:
    """What a pull brought home."""
    return {
        "files": report.files,
        "bytes": report.bytes,
        "destination": str(report.destination),
        "refused": list(report.refused),
        "received": report.received,
        "kept": report.kept,
        "grown": list(report.grown),
        "way": report.way,
        "unfinished": list(report.unfinished),
    }
