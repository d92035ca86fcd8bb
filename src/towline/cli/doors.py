"""The engine as the command line uses it, and the one place where a command gets hold of it."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from towline.cli.output import StatusLine
from towline.engine.events import Event, Held, LogChoice, LogChunk, NoAnswer, Progress, PullReport, ResultFile
from towline.models.diagnosis import Diagnosis
from towline.models.job import JobRecord

if TYPE_CHECKING:
    from towline.engine.adopting import Adopted
    from towline.engine.cluster import AsyncCluster
    from towline.engine.inside.entering import GpuReading, Place, Ran
    from towline.models.plan import Plan
    from towline.models.secrets import Secrets
    from towline.models.spec import JobSpec
    from towline.models.summary import JobSummary


class Job(Protocol):
    """What commands ask of a job; see `towline.engine.job.AsyncJob`."""

    record: JobRecord

    @property
    def id(self) -> str: ...  # noqa: D102 - described by the engine's class

    @property
    def reference(self) -> str: ...  # noqa: D102

    def tasks(self) -> Sequence[Job]: ...  # noqa: D102

    async def status(self) -> JobRecord: ...  # noqa: D102

    async def summary(self) -> JobSummary: ...  # noqa: D102

    async def why(self) -> Diagnosis | None: ...  # noqa: D102

    async def explained(self) -> JobRecord: ...  # noqa: D102

    def follow(  # noqa: D102
        self,
        *,
        tail: int | None = None,
        choice: LogChoice = ...,
        logs: bool = True,
        interval: float | None = None,
    ) -> AsyncIterator[Event]: ...

    def read_logs(  # noqa: D102
        self, *, tail: int | None = None, choice: LogChoice = ...
    ) -> AsyncIterator[LogChunk]: ...

    async def exec(  # noqa: D102
        self, command: Sequence[str], *, place: Place | None = None, sink: Callable[[bytes], None] | None = None
    ) -> Ran: ...

    async def attend(  # noqa: D102
        self, command: Sequence[str] = (), *, place: Place | None = None, terminal: bool = True
    ) -> int: ...

    def held(self) -> AbstractAsyncContextManager[None]: ...  # noqa: D102

    async def gpus(self) -> tuple[GpuReading, ...]: ...  # noqa: D102

    async def wait(  # noqa: D102
        self, timeout: float | None = None, *, interval: float | None = None
    ) -> JobRecord: ...

    async def pause(self) -> JobRecord: ...  # noqa: D102

    async def resume(self) -> JobRecord: ...  # noqa: D102

    async def cancel(self) -> JobRecord: ...  # noqa: D102

    async def results(self) -> tuple[ResultFile, ...]: ...  # noqa: D102

    async def delivery(self) -> str: ...  # noqa: D102

    async def pull_results(  # noqa: D102
        self, dest: Path, *, only: Sequence[str] = ..., progress: Callable[[Progress], None] | None = None
    ) -> PullReport: ...

    def keep_pulling(  # noqa: D102
        self, dest: Path, *, only: Sequence[str] = ..., progress: Callable[[Progress], None] | None = None
    ) -> AsyncIterator[PullReport | NoAnswer]: ...


class Cluster(Protocol):
    """What commands ask of a cluster; see `towline.engine.cluster.AsyncCluster`."""

    async def plan(  # noqa: D102
        self, spec: JobSpec, *, look: bool = False, secrets: Secrets | None = None
    ) -> Plan: ...

    async def submit(  # noqa: D102
        self,
        spec: JobSpec,
        plan: Plan | None = None,
        *,
        secrets: Secrets | None = None,
        patience: float | None = ...,
        told: Callable[[Held], None] | None = ...,
        progress: Callable[[Progress], None] | None = ...,
    ) -> Job: ...

    async def jobs(self, *, everything: bool = False) -> tuple[JobRecord, ...]: ...  # noqa: D102

    def watch_jobs(  # noqa: D102
        self, *, everything: bool = False, interval: float | None = None
    ) -> AsyncIterator[tuple[JobRecord, ...]]: ...

    async def adopt_all(self) -> Adopted: ...  # noqa: D102

    async def find(self, references: Sequence[str]) -> tuple[Job, ...]: ...  # noqa: D102

    async def clock(self) -> datetime: ...  # noqa: D102


Opener = Callable[[str | None], AbstractAsyncContextManager[Cluster]]


def open_engine(name: str | None) -> AsyncCluster:
    """The same as the engine has it, for commands that move files or make room on the cluster."""
    from towline.engine.cluster import AsyncCluster

    cluster = AsyncCluster.open(name)
    for note in cluster.notes:
        StatusLine().say(note)
    return cluster


@asynccontextmanager
async def _open_soon(name: str | None) -> AsyncGenerator[Cluster, None]:
    from towline.engine.opening import open_soon

    async with await open_soon(name) as cluster:
        for note in cluster.notes:
            StatusLine().say(note)
        yield cluster


opener: Opener = open_engine
"""How commands open the cluster with a profile's name; a test puts a cluster of its own here."""


def open_cluster(name: str | None) -> AbstractAsyncContextManager[Cluster]:
    """The cluster with that profile name, or the default one."""
    return opener(name)


def open_cluster_soon(name: str | None) -> AbstractAsyncContextManager[Cluster]:
    """The same for a command that is sure to call the cluster: the connection is opened while the rest is read in."""
    return _open_soon(name) if opener is open_engine else opener(name)
