"""`SlurmHandler`: one cluster and the rows of TAO's jobs on it; what the SDK and its monitor share."""

from __future__ import annotations

import dataclasses
import logging
import os
import threading
import time
from collections.abc import Sequence
from datetime import datetime, timezone
from typing import Any

from towline.engine.facade import Cluster
from towline.engine.facade import Job as EngineJob
from towline.models.errors import NotFound, OutcomeUnknown
from towline.models.ids import is_job_id, new_job_id
from towline.models.job import JobRecord
from towline.models.plan import Plan
from towline.tao.failure import failure_of
from towline.tao.job_store import JobStore, Row
from towline.tao.models import Job, now
from towline.tao.request import NAME, Request, Wish, request_of
from towline.tao.words import TERMINAL, word_of

logger = logging.getLogger(__name__)

UNSENT = 600.0
"""Seconds after which nobody is about to submit a job any more that the cluster does not know."""
JUST_NOW = 2.0
"""Seconds for which a look at all jobs answers for each of them."""


class SlurmHandler:
    """Does with the engine what TAO's SDK does for its jobs.

    Args:
        cluster: the cluster, which the caller closes.
        store: the rows of its jobs.
    """

    keeps_up = True
    """What is known is kept up to date in the background (`JobMonitor`)."""

    def __init__(self, cluster: Cluster, store: JobStore) -> None:
        self._cluster = cluster
        self._store = store
        self._looking = threading.Lock()
        self._seen: tuple[frozenset[str], float] = (frozenset(), 0.0)

    # --- Submitting ---

    def create_job(self, wish: Wish) -> Job:
        """Submit a job.

        One of which it is not known whether Slurm has it is a job, too: later looks find it; it is never sent twice.

        Raises:
            TowlineError: it was refused; nothing was started.
        """
        job_id = new_job_id()
        root = self._cluster.profile.root
        request = request_of(wish, f"{root}/jobs/{job_id}/results", os.environ)
        job = Job(
            id=job_id,
            network_arch="",
            action="",
            workspace_id="slurm",
            backend_type="slurm",
            backend_job_id=f"{NAME}-{job_id}",
            results_dir=f"lustre://{root}/results/{job_id}",
        )
        fields = {name: value for name, value in job.to_dict().items() if name != "job_id"}
        try:
            plan = self._plan(request, job_id)
        except BaseException:
            self._store.create_job(job_id, image=wish.image, **{**fields, "status": "Error"})
            raise
        # Not before: what a process leaves that is killed while it plans would wait for ever.
        self._store.create_job(job_id, image=wish.image, **fields)
        try:
            self._cluster.submit(request.spec, plan, secrets=request.values)
        except OutcomeUnknown as error:
            logger.warning("%s", error)
        except BaseException:
            self._store.update_job_status(job_id, "Error")
            raise
        job.status = self.known_status(job_id)
        return job

    def _plan(self, request: Request, job_id: str) -> Plan:
        plan = self._cluster.plan(request.spec, job_id=job_id, secrets=request.values)
        if request.folders:
            text = "".join(f"folder results/{name}\n" for name in request.folders)
            before = bytes(plan.files.get("script/layout", b""))
            plan = dataclasses.replace(plan, files={**plan.files, "script/layout": before + text.encode()})
        return plan

    # --- Looking ---

    def find(self, job_id: str) -> EngineJob | None:
        """The job of that id that is known here; None for none. Nothing is asked."""
        if not is_job_id(job_id):
            return None
        try:
            return self._cluster.find((job_id,))[0]
        except NotFound:
            return None

    def find_anywhere(self, job_id: str) -> EngineJob | None:
        """The same; a job that another machine has submitted is known from then on.

        Raises:
            TowlineError: the cluster could not be asked.
        """
        if (job := self.find(job_id)) or not is_job_id(job_id):
            return job
        try:
            job = self._cluster.adopt(job_id)
        except NotFound:
            return None
        row = _row_of(job.record, self._cluster.profile.root)
        self._store.create_job_if_absent(**row)
        return job

    def left_behind(self, job_id: str) -> tuple[str, str] | None:
        """The word for a job of which there is a row alone, and why; None where there is no row, either.

        The cluster has no directory of it, which is made before Slurm is asked: it was never submitted.
        """
        row = self._store.get_job(job_id) if isinstance(job_id, str) else None  # pyright: ignore[reportUnnecessaryIsInstance]
        if row is None:
            return None
        if row["status"] in TERMINAL or not is_job_id(job_id):
            return row["status"], "as it was left"
        began = datetime.fromisoformat(row["created_at"])
        if (datetime.now(timezone.utc) - began).total_seconds() < UNSENT:
            return row["status"], "a process is about to submit it"
        self._store.update_job_status(job_id, "Error")
        return "Error", "the process that was to submit it ended before it had; nothing was sent"

    def look(self, job_id: str = "") -> None:
        """Look at all jobs that have not ended, in one round trip, unless that was done for this one just now.

        Raises:
            TowlineError: nothing was learnt, and nothing changed.
        """
        with self._looking:
            seen, when = self._seen
            if job_id and job_id in seen and time.monotonic() - when < JUST_NOW:
                return
            records = self._cluster.jobs()
            # From its end on: on a slow cluster the status of each of many jobs would be a look of its own.
            self._seen = (frozenset(record.id for record in records), time.monotonic())
        for record in records:
            self.note(record)

    def note(self, record: JobRecord) -> str:
        """Write down what is known of a job now; the result is TAO's word for it."""
        while True:
            row = self._store.get_job(record.id)
            before = row["status"] if row else ""
            word = word_of(record, before)
            # Another thread may cancel the job meanwhile, or see its end.
            if not row or word == before or before in TERMINAL:
                return word
            if self._store.compare_and_set_job_status(record.id, (before,), word):
                return word

    def known_status(self, job_id: str) -> str:
        """TAO's word for a job as it was last seen, by whichever process; nothing is asked."""
        if job := self.find(job_id):
            return self.note(job.record)
        row = self._store.get_job(job_id)
        return row["status"] if row else "Unknown"

    def get_tao_job_status(self, job_id: str) -> str | None:
        """The same."""
        return self.known_status(job_id)

    def normalize_status(self, raw_status: str | None) -> str:
        """The word itself."""
        return raw_status or "Unknown"

    def get_job_progress(self, job_id: str) -> tuple[int, int] | None:
        """The epoch that a job reports and how many there are (0 when it does not say); None when it reports none."""
        job = self.find(job_id)
        progress = job.record.progress if job else None
        if progress is None or progress.epoch is None:
            return None
        return progress.epoch, progress.epochs or 0

    def get_job_logs(self, job_id: str, tail_lines: int | None = None) -> str:
        """The newest attempt's stdout and then its stderr; empty for a job that has none yet."""
        job = self.find_anywhere(job_id)
        if job is None:
            return ""
        texts: dict[str, bytearray] = {"out": bytearray(), "err": bytearray()}
        try:
            for chunk in job.logs(tail=None if tail_lines is None else max(0, int(tail_lines))):
                texts[chunk.stream].extend(chunk.data)
        except NotFound:
            return ""
        out, err = (text.decode("utf-8", "replace") for text in texts.values())
        return f"{out}\n{err}" if out and err and not out.endswith("\n") else out + err

    def get_failure_analysis(self, job_id: str) -> dict[str, Any] | None:
        """See `towline.tao.failure.failure_of`; the first time the log is searched where it is.

        Raises:
            TowlineError: the log could not be searched.
        """
        job = self.find_anywhere(job_id)
        return failure_of(job.record, job.why()) if job else None

    # --- Ending ---

    def cancel_job(self, job_id: str) -> bool:
        """Cancel a job; one that is over, or that Slurm does not have, counts as cancelled.

        Raises:
            TowlineError: Slurm could not be told.
        """
        job = self.find_anywhere(job_id)
        if job is None:
            row = self._store.get_job(job_id)
            return bool(row and row["status"] in TERMINAL)
        if not job.record.state.ended:
            record = job.cancel(confirm=False)
            self._seen = (frozenset(), 0.0)
            self._store.update_job_status(job_id, "Canceling")
            self.note(record)
        return True

    def delete_results(self, job_id: str) -> bool:
        """Remove the results of a job that has ended; the result is whether they are gone."""
        if self.known_status(job_id) not in TERMINAL or self.find(job_id) is None:
            return False
        done = f"results/{job_id}" in self._cluster.clean([f"results/{job_id}"]).gone
        if done:
            self._store.delete_checkpoints(job_id)
        return done

    # --- Rows ---

    def row(self, job_id: str) -> Row | None:
        """All that is known of a job, as plain values; None for none."""
        row = self._store.get_job(job_id)
        job = self.find(job_id)
        if job is None:
            return row
        record = job.record
        return {**(row or _row_of(record, self._cluster.profile.root)), **_seen(record), "status": self.note(record)}

    def rows(self, status: str | None = None) -> list[Row]:
        """The same of all jobs, newest first, of which that is the status."""
        found = [self.row(each["job_id"]) or each for each in self._store.list_jobs()]
        return [row for row in found if status is None or row["status"] == status]

    def unfinished(self) -> Sequence[Job]:
        """The jobs that have not ended as far as is known here, whichever process submitted them."""
        rows = [row for row in self._store.list_jobs() if row["status"] not in TERMINAL]
        return [
            job_of(row) for row in rows if self.find(row["job_id"]) and self.known_status(row["job_id"]) not in TERMINAL
        ]


def job_of(row: Row) -> Job:
    """A row as a job."""
    names = [field.name for field in dataclasses.fields(Job) if field.name != "id"]
    return Job(id=row["job_id"], **{name: row.get(name) or "" for name in names})


def _row_of(record: JobRecord, root: str) -> Row:
    """A row for a job that another door has submitted."""
    return {
        "job_id": record.id,
        **Job(
            id=record.id,
            network_arch="",
            action="",
            workspace_id="slurm",
            backend_type="slurm",
            backend_job_id=f"{record.name}-{record.id}",
            results_dir=f"lustre://{root}/results/{record.id}",
            created_at=now(),
        ).to_dict(),
    }


def _seen(record: JobRecord) -> Row:
    """What Slurm has of a job; the names are those of the microservices' schema."""
    ids = record.slurm_ids
    return {
        "slurm_job_id": record.last.slurm_id,
        "slurm_metadata": {
            "slurm_job_id": record.last.slurm_id,
            "job_dir": record.directory,
            "retry_count": max(0, record.last.number - 1),
            "failed_slurm_job_ids": [each for each in ids if each != record.last.slurm_id],
        },
        "message": record.note,
    }
