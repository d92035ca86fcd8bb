"""A cluster in memory for the command line: jobs do what a script of events says, and calls are recorded."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from pathlib import Path
from types import TracebackType
from typing import Any

from towline.engine.events import (
    Event,
    Held,
    LogChoice,
    LogChunk,
    NoAnswer,
    Progress,
    PullReport,
    ResultFile,
    StateChanged,
)
from towline.engine.inside.entering import GpuReading, Place, Ran
from towline.engine.watching.arrays import task_of
from towline.engine.watching.why import attempt_to_explain
from towline.models.diagnosis import Diagnosis
from towline.models.errors import NotFound, PlanRefused, TowlineError, WaitTimedOut
from towline.models.job import Attempt, JobRecord, JobState
from towline.models.plan import Check, Plan, Verdict
from towline.models.secrets import Secrets
from towline.models.spec import JobSpec
from towline.models.summary import JobSummary

ALL = LogChoice()
OUT, ERR = "out", "err"


def record(
    state: JobState = JobState.RUNNING,
    *,
    job_id: str = "k3v9x2m4q",
    name: str = "train",
    note: str = "",
    **attempt: Any,
) -> JobRecord:
    """A job on the cluster `fake`."""
    first = replace(Attempt(slurm_id="41"), **attempt)
    return JobRecord(
        job_id, name, "fake", state, f"/lustre/jobs/{job_id}", 1_000_000.0, (first,), note, "python train.py"
    )


def ended(code: int, **attempt: Any) -> JobRecord:
    """A job that ended with this code of its own."""
    state = JobState.FAILED if code else JobState.SUCCEEDED
    times: dict[str, Any] = {"started": 100, "ended": 112, "exit_code": code, "exit_source": "job"}
    return record(state, **{**times, **attempt})


def out(data: bytes) -> LogChunk:
    return LogChunk("out", data)


def err(data: bytes) -> LogChunk:
    return LogChunk("err", data)


class Forever:
    """In a job's events: nothing more comes."""


@dataclass
class FakeJob:
    """A job that tells these events, one after another."""

    record: JobRecord
    events: Sequence[Event | TowlineError | Forever] = ()
    files: tuple[ResultFile, ...] = ()
    calls: list[str] = field(default_factory=list[str])
    figures: JobSummary = field(default_factory=JobSummary)
    commands: list[tuple[tuple[str, ...], Place | None]] = field(
        default_factory=list["tuple[tuple[str, ...], Place | None]"]
    )
    ran: Ran = Ran(0, b"", b"")  # noqa: RUF009  it is frozen
    readings: tuple[GpuReading, ...] = ()
    pulled: PullReport | None = None

    async def exec(
        self, command: Sequence[str], *, place: Place | None = None, sink: Callable[[bytes], None] | None = None
    ) -> Ran:
        self.commands.append((tuple(command), place))
        if sink:
            sink(self.ran.stdout)
        return self.ran

    async def attend(self, command: Sequence[str] = (), *, place: Place | None = None, terminal: bool = True) -> int:
        self.commands.append((tuple(command), place))
        return self.ran.code

    @asynccontextmanager
    async def held(self) -> AsyncGenerator[None, None]:
        yield

    async def gpus(self) -> tuple[GpuReading, ...]:
        return self.readings

    @property
    def id(self) -> str:
        return self.record.id

    @property
    def reference(self) -> str:
        return self.record.reference

    def tasks(self) -> tuple[FakeJob, ...]:
        numbers = sorted(self.record.tasks.numbers) if self.record.tasks else ()
        return tuple(FakeJob(task_of(self.record, number), self.events) for number in numbers)

    async def status(self) -> JobRecord:
        self.calls.append("status")
        return self.record

    async def summary(self) -> JobSummary:
        return self.figures

    async def why(self) -> Diagnosis | None:
        self.calls.append("why")
        attempt = attempt_to_explain(self.record)
        return attempt.diagnosis if attempt else None

    async def explained(self) -> JobRecord:
        return self.record

    async def follow(
        self,
        *,
        tail: int | None = None,
        choice: LogChoice = ALL,
        logs: bool = True,
        interval: float | None = None,
    ) -> AsyncIterator[Event]:
        self.calls.append(f"follow {tail}{f' every {interval:g}' if interval else ''}")
        for event in self.events:
            await asyncio.sleep(0)
            if isinstance(event, TowlineError):
                raise event
            if isinstance(event, Forever):
                await asyncio.Event().wait()
                return
            if isinstance(event, StateChanged):
                self.record = event.record
            yield event

    async def read_logs(self, *, tail: int | None = None, choice: LogChoice = ALL) -> AsyncIterator[LogChunk]:
        self.calls.append(f"read_logs {tail}")
        for event in self.events:
            if isinstance(event, LogChunk) and choice.role in ("", event.role):
                yield event

    async def wait(self, timeout: float | None = None, *, interval: float | None = None) -> JobRecord:
        self.calls.append(f"wait {timeout}{f' every {interval:g}' if interval else ''}")
        if not self.record.state.ended:
            raise WaitTimedOut(f"job {self.id} is still {self.record.state}")
        return self.record

    async def cancel(self) -> JobRecord:
        self.calls.append("cancel")
        if not self.record.state.ended:
            self.record = replace(self.record, state=JobState.CANCELLED)
        return self.record

    async def delivery(self) -> str:
        return ""

    async def results(self) -> tuple[ResultFile, ...]:
        return self.files

    async def keep_pulling(
        self, dest: Path, *, only: Sequence[str] = (), progress: Callable[[Progress], None] | None = None
    ) -> AsyncIterator[PullReport | NoAnswer]:
        yield await self.pull_results(dest, only=only, progress=progress)
        yield NoAnswer("no route to host")
        yield await self.pull_results(dest, only=only, progress=progress)

    async def pull_results(
        self, dest: Path, *, only: Sequence[str] = (), progress: Callable[[Progress], None] | None = None
    ) -> PullReport:
        total = sum(file.size for file in self.files)
        if progress:
            progress(Progress(0, len(self.files), 0, total))
            progress(Progress(len(self.files), len(self.files), total, total))
        return self.pulled or PullReport(len(self.files), total, dest, (), 7, 1, ("log",), "tar: few files")


@dataclass
class FakeCluster:
    """A cluster that knows some jobs; `job` is what the next submission makes."""

    known: Sequence[FakeJob] = ()
    job: FakeJob = field(default_factory=lambda: FakeJob(record(JobState.PENDING)))
    checks: tuple[Check, ...] = (Check("partition", Verdict.OK, "batch takes jobs of up to 4 hours"),)
    refusal: Exception | None = None
    specs: list[JobSpec] = field(default_factory=list[JobSpec])
    opened: list[str | None] = field(default_factory=list[str | None])
    submitted: int = 0
    secrets: Secrets | None = None
    holds: tuple[str, ...] = ()
    """Why the next submission is held, each time it is tried."""
    patience: float | None = None
    stuck: bool = False
    interval: float | None = None
    """Whether a submission never gets its answer."""

    def open(self, name: str | None) -> FakeCluster:
        """What `towline.cli.doors.opener` is set to."""
        self.opened.append(name)
        return self

    async def __aenter__(self) -> FakeCluster:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        pass

    async def plan(self, spec: JobSpec, *, look: bool = False, secrets: Secrets | None = None) -> Plan:
        self.specs.append(spec)
        if self.refusal:
            raise self.refusal
        files = {"script/batch": b"#!/bin/sh\n#SBATCH --nodes=2\nexec x\n", "job.json": b"{}\n"}
        command = ("sbatch", "--parsable", "script/batch")
        return Plan("k3v9x2m4q", "train-k3v9x2m4q-a1", spec, "/lustre/jobs/k3v9x2m4q", files, self.checks, (), command)

    async def submit(
        self,
        spec: JobSpec,
        plan: Plan | None = None,
        *,
        secrets: Secrets | None = None,
        patience: float | None = None,
        told: Callable[[Held], None] | None = None,
        progress: Callable[[Progress], None] | None = None,
    ) -> FakeJob:
        plan = plan or await self.plan(spec)
        self.secrets = secrets
        self.patience = patience
        for again, reason in enumerate(self.holds):
            if told:
                told(Held(self.job.record, reason, 8.0 * 2**again))
        if plan.failures:
            raise PlanRefused("the job would not run", why=plan.failures[0].evidence, fix=plan.failures[0].fix)
        self.submitted += 1
        if self.stuck:
            sys.stdout.write("submitting\n")
            sys.stdout.flush()
            await asyncio.Event().wait()
        return self.job

    async def jobs(self, *, everything: bool = False) -> tuple[JobRecord, ...]:
        return tuple(job.record for job in self.known if everything or not job.record.state.ended)

    async def watch_jobs(
        self, *, everything: bool = False, interval: float | None = None
    ) -> AsyncIterator[tuple[JobRecord, ...]]:
        self.interval = interval
        for left in range(len(self.known) + 1):
            yield tuple(job.record for job in self.known[left:])

    async def clock(self) -> datetime:
        return datetime(2026, 3, 10, 12, 0, 0, tzinfo=timezone.utc)

    async def find(self, references: Sequence[str]) -> tuple[FakeJob, ...]:
        return tuple(self._find(reference) for reference in references)

    def _find(self, reference: str) -> FakeJob:
        for job in self.known:
            if reference in (job.id, job.record.name, *job.record.slurm_ids):
                return job
        raise NotFound(f"no job {reference!r} is known", fix="See `towline ps -a`.")
