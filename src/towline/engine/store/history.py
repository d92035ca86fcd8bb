"""What happened to jobs, as events. The first half is pure; the second half writes and reads them in the store.

An event is made where a job is saved, in the same transaction, from what the store had before: each change is told
once, whichever of several processes saw it first.
"""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from towline.models.event import EventKind, JobEvent
from towline.models.job import JobRecord, JobState
from towline.models.values import Json
from towline.slurm.reasons import explain_reason


@dataclass(frozen=True)
class Happened:
    """One change of a job.

    Attributes:
        kind: what changed.
        details: from what to what.
    """

    kind: EventKind
    details: Mapping[str, Json] = field(default_factory=dict[str, Json])


def created(record: JobRecord, *, adopted: bool) -> Happened:
    """That the job is known from now on; `adopted` when somebody else has submitted it."""
    return Happened(EventKind.CREATED, {"command": record.command, **({"adopted": True} if adopted else {})})


def before_adoption(happened: Sequence[Happened]) -> tuple[Happened, ...]:
    """What the first look at an adopted job shows: it was so before, and whoever watched the job then was told."""
    return tuple(Happened(each.kind, {**each.details, "adopted": True}) for each in happened)


def changes(before: JobRecord, after: JobRecord) -> tuple[Happened, ...]:
    """What is to be told of a job that was known as `before` and is known as `after` now, in order."""
    return tuple(_changes(before, after))


def _changes(before: JobRecord, after: JobRecord) -> Iterator[Happened]:
    last, was = after.last, before.last
    if (last.number, last.slurm_id) != (was.number, was.slurm_id):
        yield Happened(
            EventKind.ATTEMPT,
            {
                "number": last.number,
                "slurm_id": last.slurm_id,
                "before": _ended_as(after, was.number) if last.number != was.number else "",
            },
        )
    if after.progress and after.progress != before.progress:
        yield Happened(EventKind.PROGRESS, after.progress.as_dict())
    if after.tasks and before.tasks and after.tasks.by_state() != before.tasks.by_state():
        counted: dict[str, Json] = {str(state): len(tasks) for state, tasks in after.tasks.by_state().items()}
        yield Happened(EventKind.TASKS, counted)
    if after.state is not before.state:
        yield Happened(EventKind.STATE, {"before": str(before.state), **_described(after)})
    if after.state is JobState.PENDING and last.reason and (before.state, was.reason) != (after.state, last.reason):
        reason = explain_reason(last.reason)
        yield Happened(EventKind.WAITING, {"reason": reason.word, "blocked": reason.blocked, "way_out": reason.way_out})


def _described(record: JobRecord) -> dict[str, Json]:
    last = record.last
    return {
        "ended": record.state.ended,
        "slurm_id": last.slurm_id,
        "slurm_state": last.slurm_state,
        "reason": last.reason,
        "nodes": last.nodes,
        "exit_code": last.exit_code,
        "failed_rank": last.failed_rank,
        "failed_role": last.failed_role,
    }


def _ended_as(record: JobRecord, number: int) -> str:
    return next((each.slurm_state for each in record.attempts if each.number == number), "")


# --- In the store ---


def append(db: sqlite3.Connection, record: JobRecord, happened: Sequence[Happened], key: str | None = None) -> int:
    """Write events down, within the caller's transaction; the result is how many are new.

    Args:
        db: the store.
        record: the job as it is afterwards.
        happened: what to write.
        key: with it only the first event of that key and job is kept, whoever writes it.
    """
    now, written = time.time(), 0
    for each in happened:
        cursor = db.execute(
            "INSERT OR IGNORE INTO events (time, cluster, job, name, kind, state, attempt, note, details, key) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                now,
                record.cluster,
                record.id,
                record.name,
                each.kind.value,
                record.state.value,
                record.last.number,
                record.note,
                json.dumps(dict(each.details)),
                key,
            ),
        )
        written += cursor.rowcount
    return written


def read(
    db: sqlite3.Connection, cluster: str, after: int, jobs: Sequence[str] | None, limit: int
) -> tuple[JobEvent, ...]:
    """The events with higher numbers than `after`, oldest first, of the cluster or of these jobs of it."""
    chosen = "" if jobs is None else f" AND job IN ({', '.join('?' * len(jobs))})"
    rows = db.execute(
        f"SELECT * FROM events WHERE number > ? AND cluster = ?{chosen} ORDER BY number LIMIT ?",  # noqa: S608
        (after, cluster, *(jobs or ()), limit),
    )
    return tuple(_event(row) for row in rows)


def is_just_adopted(db: sqlite3.Connection, job: str) -> bool:
    """Whether nothing has happened to the job but that it was adopted."""
    rows = db.execute("SELECT details FROM events WHERE job = ? LIMIT 2", (job,)).fetchall()
    return len(rows) == 1 and json.loads(rows[0]["details"]).get("adopted") is True


def newest(db: sqlite3.Connection) -> int:
    """The highest number that an event has had; 0 for none."""
    row = db.execute("SELECT coalesce(max(number), 0) AS number FROM events").fetchone()
    return int(row["number"])


def _event(row: sqlite3.Row) -> JobEvent:
    return JobEvent(
        number=row["number"],
        time=row["time"],
        cluster=row["cluster"],
        job_id=row["job"],
        job_name=row["name"],
        kind=EventKind(row["kind"]),
        state=JobState(row["state"]),
        attempt=row["attempt"],
        note=row["note"],
        details=json.loads(row["details"]),
    )
