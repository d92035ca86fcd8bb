"""How jobs and their attempts stand in the store's tables."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import asdict, fields
from typing import Any

from towline.models.diagnosis import Diagnosis
from towline.models.job import Attempt, Component, JobRecord, JobState, Tasks
from towline.models.report import Reported

CHANGING = ("state", "note", "tasks", "progress")
"""Columns of a job that change after its submission."""

_JOB = ("id", "name", "cluster", "state", "directory", "created", "note", "command")
_ATTEMPT = tuple(field.name for field in fields(Attempt))


def record_of(row: sqlite3.Row, attempts: Sequence[Attempt]) -> JobRecord:
    """The job of a row of `jobs`."""
    plain: dict[str, Any] = {name: row[name] for name in _JOB}
    plain["state"] = JobState(plain["state"])
    return JobRecord(
        **plain,
        attempts=tuple(attempts),
        roles=tuple(row["roles"].split()),
        tasks=Tasks.from_json(row["tasks"]),
        progress=Reported(**json.loads(row["progress"])) if row["progress"] else None,
    )


def attempt_of(row: sqlite3.Row) -> Attempt:
    """The attempt of a row of `attempts`."""
    plain: dict[str, Any] = {name: row[name] for name in _ATTEMPT}
    parts: list[dict[str, str]] = json.loads(plain.pop("components") or "[]")
    told = plain.pop("diagnosis")
    diagnosis = Diagnosis(**json.loads(told)) if told else None
    return Attempt(**plain, components=tuple(Component(**part) for part in parts), diagnosis=diagnosis)


def mark_changed(db: sqlite3.Connection, job_id: str) -> None:
    """Give a job that is written a number that no change of any job has had before, whatever was removed since."""
    db.execute("UPDATE marks SET mark = max(mark, (SELECT max(changed) FROM jobs)) + 1")
    db.execute("UPDATE jobs SET changed = (SELECT mark FROM marks) WHERE id = ?", (job_id,))


def put_attempts(db: sqlite3.Connection, record: JobRecord) -> None:
    """Write a job's attempts."""
    for attempt in record.attempts:
        values = {"job": record.id, **asdict(attempt)}
        for name in ("components", "diagnosis"):
            values[name] = json.dumps(values[name]) if values[name] else ""
        db.execute(insert("REPLACE", "attempts", values), values)


def job_values(record: JobRecord) -> dict[str, object]:
    """The columns of a job's row."""
    values: dict[str, object] = {name: getattr(record, name) for name in _JOB}
    values["state"] = record.state.value
    values["tasks"] = record.tasks.to_json() if record.tasks else ""
    values["roles"] = " ".join(record.roles)
    values["progress"] = json.dumps(asdict(record.progress)) if record.progress else ""
    return values


def insert(verb: str, table: str, columns: Iterable[str]) -> str:
    """The statement that writes a row with these columns, whose values are bound by name."""
    names = list(columns)
    return f"{verb} INTO {table} ({', '.join(names)}) VALUES ({', '.join(':' + name for name in names)})"
