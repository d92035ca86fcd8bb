"""The local store: what this user's processes know about their jobs. A cache: the job directories are the truth."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

from towline.engine.planning.estimating import Wait
from towline.engine.store import history
from towline.engine.store.database import Database
from towline.engine.store.history import Happened
from towline.engine.store.rows import CHANGING, attempt_of, insert, job_values, mark_changed, put_attempts, record_of
from towline.models.diagnosis import Diagnosis
from towline.models.event import EventKind, JobEvent
from towline.models.job import Attempt, JobRecord, JobState
from towline.models.site import SiteFacts
from towline.models.spec import JobSpec
from towline.models.values import Json

RECENT = 200
"""Jobs from which an estimate is made at most."""

_TOGETHER = 500
"""Jobs that are read with one query."""
_FORGET_EVENTS = (
    "DELETE FROM events WHERE job = ? AND NOT EXISTS (SELECT 1 FROM channels "
    "WHERE channels.cluster = events.cluster AND channels.told < events.number)"
)
"""But for those that people are still to be told of."""
_ALIVE = tuple(state.value for state in JobState if not state.ended)


class _Kept(NamedTuple):
    """A job as it was read.

    Attributes:
        record: the job.
        changed: the number of its newest change.
        seen: when the look began that this change was learnt from.
    """

    record: JobRecord
    changed: int
    seen: float


class Store(Database):
    """Jobs, their attempts, and what clusters said of themselves. Every method is one transaction.

    Args:
        directory: the state directory; made with mode 0700 when missing.

    Attributes:
        on_change: called after jobs or events were written.

    Raises:
        ConfigError: the directory or the file in it cannot be used.
    """

    on_change: Callable[[], None] | None = None

    def __init__(self, directory: Path) -> None:
        self._read: dict[str, _Kept] = {}
        super().__init__(directory)

    # --- Jobs ---

    def intend(self, record: JobRecord, spec: JobSpec, *, adopted: bool = False) -> None:
        """Record a job before anything of it is sent, or one that was found on the cluster.

        Raises:
            ConfigError: it cannot be kept.
            sqlite3.IntegrityError: the id exists already.
        """
        self.must_keep()
        with self.writing() as db:
            values = job_values(record) | {"spec": spec.model_dump_json()}
            db.execute(insert("INSERT", "jobs", values), values)
            put_attempts(db, record)
            mark_changed(db, record.id)
            history.append(db, record, [history.created(record, adopted=adopted)])
        self._wake()

    def save(self, *records: JobRecord, seen: float | None = None) -> tuple[JobRecord, ...]:
        """Write what is known now, with an event for each change; a job that has ended never gets another state.

        Args:
            records: the jobs.
            seen: when the look began that this was learnt from, in seconds since 1970. What a later look has shown
                stays then.

        Returns:
            The jobs as they are in the store afterwards; those that are not there as they were given.
        """
        with self.writing() as db:
            known = self._known([record.id for record in records])
            saved = tuple(_saved(db, record, known.get(record.id), seen) for record in records)
        self._wake()
        return saved

    def _wake(self) -> None:
        if self.on_change:
            self.on_change()

    def _known(self, ids: Sequence[str]) -> dict[str, _Kept]:
        """The jobs with these ids."""
        some = (ids[start : start + _TOGETHER] for start in range(0, len(ids), _TOGETHER))
        kept = (each for part in some for each in self._select(f"WHERE id IN ({', '.join('?' * len(part))})", part))
        return {each.record.id: each for each in kept}

    def keep_diagnosis(self, record: JobRecord, number: int, found: Diagnosis) -> None:
        """Write why an attempt ended, and the job's note; the job's state, which may have ended, stays as it is."""
        with self.writing() as db:
            body = json.dumps(asdict(found))
            db.execute("UPDATE attempts SET diagnosis = ? WHERE job = ? AND number = ?", (body, record.id, number))
            db.execute("UPDATE jobs SET note = ? WHERE id = ?", (record.note, record.id))
            mark_changed(db, record.id)

    def keep_tasks(self, record: JobRecord) -> None:
        """Write what was found of an array's tasks; everything else about the job stays as it is."""
        with self.writing() as db:
            db.execute("UPDATE jobs SET tasks = ? WHERE id = ?", (job_values(record)["tasks"], record.id))
            mark_changed(db, record.id)

    def remove(self, job_ids: Iterable[str]) -> None:
        """Forget jobs."""
        with self.writing() as db:
            for job_id in job_ids:
                self._read.pop(job_id, None)
                db.execute("DELETE FROM attempts WHERE job = ?", (job_id,))
                db.execute(_FORGET_EVENTS, (job_id,))
                db.execute("DELETE FROM jobs WHERE id = ?", (job_id,))

    def job(self, job_id: str) -> JobRecord | None:
        """The job of that id, or None."""
        return next(iter(self._jobs("WHERE id = ?", (job_id,))), None)

    def spec(self, job_id: str) -> JobSpec:
        """The spec that the job was submitted with."""
        row = self._db.execute("SELECT spec FROM jobs WHERE id = ?", (job_id,)).fetchone()
        return JobSpec.model_validate_json(row["spec"])

    def by_slurm_id(self, slurm_id: str, cluster: str) -> tuple[JobRecord, ...]:
        """The jobs that have had this Slurm id on that cluster, newest first (ids repeat)."""
        where = "WHERE cluster = ? AND id IN (SELECT job FROM attempts WHERE slurm_id = ?) ORDER BY id DESC"
        return self._jobs(where, (cluster, slurm_id))

    def by_name(self, name: str, cluster: str) -> tuple[JobRecord, ...]:
        """The jobs of that name on that cluster, newest first."""
        return self._jobs("WHERE cluster = ? AND name = ? ORDER BY id DESC", (cluster, name))

    def jobs(self, cluster: str, *, everything: bool = False) -> tuple[JobRecord, ...]:
        """The cluster's jobs, oldest first: those that have not ended, or all of them."""
        words = ", ".join(f"'{word}'" for word in _ALIVE)
        alive = "" if everything else f"AND state IN ({words})"
        return self._jobs(f"WHERE cluster = ? {alive} ORDER BY id", (cluster,))

    def newest_change(self) -> int:
        """The number of the newest change of a job, for `changed_since`."""
        return int(self._db.execute("SELECT coalesce(max(changed), 0) FROM jobs").fetchone()[0])

    def changed_since(self, cluster: str, mark: int) -> tuple[tuple[JobRecord, ...], int]:
        """The cluster's jobs that any process has changed since `mark`, and the next mark; 0 means all jobs."""
        newest = self.newest_change()
        mark = mark if mark <= newest else 0  # the jobs with the newest changes were removed
        records = self._jobs("WHERE cluster = ? AND changed >= ? ORDER BY id", (cluster, mark)) if newest else ()
        return records, newest

    def _jobs(self, where: str, values: Sequence[str | int]) -> tuple[JobRecord, ...]:
        with self.reading():
            return tuple(each.record for each in self._select(where, values))

    def _select(self, where: str, values: Sequence[str | int]) -> list[_Kept]:
        """The jobs that a condition chooses, in its order; only those are read whole that were written since."""
        rows = self._db.execute(f"SELECT id, changed FROM jobs {where}", values).fetchall()  # noqa: S608
        found = {
            job_id: kept for job_id, changed in rows if (kept := self._read.get(job_id)) and kept.changed == changed
        }
        unread = [job_id for job_id, _ in rows if job_id not in found]
        for start in range(0, len(unread), _TOGETHER):
            found |= self._read_whole(unread[start : start + _TOGETHER])
        return [found[job_id] for job_id, _ in rows]

    def _read_whole(self, ids: Sequence[str]) -> dict[str, _Kept]:
        """Read jobs, and keep those that have not ended: they are read again and again."""
        marks = ", ".join("?" * len(ids))
        attempts: dict[str, list[Attempt]] = {}
        for row in self._db.execute(f"SELECT * FROM attempts WHERE job IN ({marks}) ORDER BY job, number", ids):  # noqa: S608
            attempts.setdefault(row["job"], []).append(attempt_of(row))
        rows = self._db.execute(f"SELECT * FROM jobs WHERE id IN ({marks})", ids)  # noqa: S608
        read = {
            row["id"]: _Kept(record_of(row, attempts.get(row["id"], ())), row["changed"], row["seen"]) for row in rows
        }
        for job_id, kept in read.items():
            if kept.record.state.ended:
                self._read.pop(job_id, None)
            else:
                self._read[job_id] = kept
        return read

    # --- What happened ---

    def tell(self, record: JobRecord, kind: EventKind, details: Mapping[str, Json], *, key: str | None = None) -> bool:
        """Write an event down that no change of the job itself tells; the result is whether it is new.

        Args:
            record: the job as it is afterwards.
            kind: what happened.
            details: more.
            key: with it only the first event of that key and job is kept, whichever process writes it.
        """
        with self.writing() as db:
            new = bool(history.append(db, record, [Happened(kind, details)], key))
        self._wake()
        return new

    def events(
        self, cluster: str, *, after: int = 0, jobs: Sequence[str] | None = None, limit: int = 1000
    ) -> tuple[JobEvent, ...]:
        """The cluster's events with higher numbers than `after`, oldest first.

        Args:
            cluster: name of the cluster profile.
            after: the number of the last event that is known.
            jobs: ids of the jobs that are wanted; all when None.
            limit: at most so many.
        """
        return history.read(self._db, cluster, after, jobs, limit)

    def newest_event(self) -> int:
        """The highest number that an event has; 0 for none."""
        return history.newest(self._db)

    # --- What clusters said of themselves ---

    def facts(self, cluster: str) -> SiteFacts | None:
        """The newest facts of that cluster profile, or None."""
        row = self._db.execute("SELECT asked, body FROM facts WHERE cluster = ?", (cluster,)).fetchone()
        return SiteFacts.from_json(row["body"]) if row else None

    def save_facts(self, profile: str, facts: SiteFacts) -> None:
        """Keep facts under the name of the cluster profile."""
        with self.writing() as db:
            values = {"cluster": profile, "asked": facts.asked, "body": facts.to_json()}
            db.execute(insert("REPLACE", "facts", values), values)

    def forget_facts(self, profile: str) -> None:
        """Ask again the next time: what was kept turned out to be wrong."""
        with self.writing() as db:
            db.execute("DELETE FROM facts WHERE cluster = ?", (profile,))

    def waits(self, cluster: str) -> tuple[Wait, ...]:
        """How long the newest jobs on that cluster waited for their first start."""
        rows = self._db.execute(
            "SELECT jobs.spec, attempts.started - attempts.submitted AS seconds FROM jobs "
            "JOIN attempts ON attempts.job = jobs.id AND attempts.number = 1 "
            "WHERE cluster = ? AND attempts.started IS NOT NULL AND attempts.submitted IS NOT NULL "
            "ORDER BY jobs.id DESC LIMIT ?",
            (cluster, RECENT),
        ).fetchall()
        return tuple(_wait(json.loads(row["spec"]), int(row["seconds"])) for row in rows if row["seconds"] >= 0)


def _wait(spec: dict[str, Any], seconds: int) -> Wait:
    wanted = spec.get("resources", {})
    nodes = int(wanted.get("nodes", 1))
    return Wait(seconds, tuple(spec.get("partition", ())), nodes, nodes * int(wanted.get("gpus_per_node", 0)))


def _saved(db: sqlite3.Connection, record: JobRecord, known: _Kept | None, seen: float | None) -> JobRecord:
    """Write a job that has changed since `known`; the result is the job as it is in the store then."""
    if known is None:
        return record
    before = known.record
    if record is before or record == before or before.state.ended or (seen is not None and known.seen > seen):
        return before
    columns = (*CHANGING, "seen")
    values = {"id": record.id, "seen": seen or known.seen, **{name: job_values(record)[name] for name in CHANGING}}
    db.execute(f"UPDATE jobs SET {', '.join(f'{name} = :{name}' for name in columns)} WHERE id = :id", values)  # noqa: S608
    put_attempts(db, record)
    mark_changed(db, record.id)
    happened = history.changes(before, record)
    if happened and not known.seen and history.is_just_adopted(db, record.id):
        happened = history.before_adoption(happened)
    history.append(db, record, happened)
    return record
