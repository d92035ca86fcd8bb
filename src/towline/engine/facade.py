"""`Cluster` and `Job`: the same as `AsyncCluster` and `AsyncJob` for code that does not use asyncio.

One thread with an event loop serves a cluster; every method waits for its coroutine there. Objects may be used
from any thread.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

from towline.config.files import load_profile
from towline.config.profile import ClusterProfile
from towline.engine.adopting import Adopted
from towline.engine.cluster import AsyncCluster
from towline.engine.events import Event, Held, LogChunk, NoAnswer, Progress, PullReport, ResultFile
from towline.engine.inside.entering import GpuReading, Place, Ran
from towline.engine.job import AsyncJob
from towline.engine.listing import Listing
from towline.engine.mapping import Work
from towline.engine.staging.cleaning import Removed
from towline.engine.staging.pushing import Pushed
from towline.engine.submitting.submission import PATIENCE
from towline.models.code import Code
from towline.models.diagnosis import Diagnosis
from towline.models.errors import UsageError
from towline.models.event import JobEvent
from towline.models.job import JobRecord
from towline.models.plan import Plan
from towline.models.secrets import Secrets
from towline.models.spec import JobSpec
from towline.models.summary import JobSummary
from towline.models.values import Json
from towline.storage.logs import LogChoice

T = TypeVar("T")


class _Loop:
    """An event loop in a thread of its own."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="towline", daemon=True)
        self._thread.start()

    @property
    def closed(self) -> bool:
        """Whether the loop was closed."""
        return self._loop.is_closed()

    def wait(self, work: Coroutine[Any, Any, T]) -> T:
        """The coroutine's result; an interrupt of the waiting thread cancels it."""
        if self.closed:
            work.close()
            raise UsageError("the cluster is closed", fix="Open it again with `Cluster.open`.")
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def begin(self, work: Coroutine[Any, Any, None]) -> Callable[[], None]:
        """Run the coroutine in the background; the result ends it and waits until it has ended."""
        task = self.wait(_begun(work))

        def end() -> None:
            if not self.closed:
                self.wait(_ended(task))

        return end

    def iterate(self, source: AsyncIterator[T]) -> Iterator[T]:
        """The asynchronous iterator's items, one at a time."""
        try:
            while True:
                try:
                    yield self.wait(_next(source))
                except StopAsyncIteration:
                    return
        finally:
            close = getattr(source, "aclose", None)  # so that it lets go of what it holds
            if close and not self.closed:
                self.wait(close())

    def close(self) -> None:
        self.wait(self._loop.shutdown_asyncgens())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


async def _begun(work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
    return asyncio.create_task(work)


async def _ended(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.wait([task])


async def _next(source: AsyncIterator[T]) -> T:
    return await source.__anext__()


class Cluster:
    """One cluster: submit jobs to it and find those that were submitted.

    Args:
        profile: the cluster's settings.

    Use it as a context manager, or call `close`.
    """

    def __init__(self, profile: ClusterProfile) -> None:
        self._loop = _Loop()
        self._cluster = self._loop.wait(_made(profile))

    @classmethod
    def open(cls, name: str | None = None) -> Cluster:
        """The cluster with that profile name, or the default one.

        Raises:
            ConfigError: there is no such profile, or a setting in it is wrong.
        """
        return cls(load_profile(name))

    @property
    def profile(self) -> ClusterProfile:
        """The cluster's settings."""
        return self._cluster.profile

    @property
    def calls(self) -> int:
        """Round trips to the cluster so far."""
        return self._cluster.calls

    def plan(self, spec: JobSpec, *, look: bool = False, secrets: Secrets | None = None, job_id: str = "") -> Plan:
        """See `AsyncCluster.plan`."""
        return self._loop.wait(self._cluster.plan(spec, look=look, secrets=secrets, job_id=job_id))

    def submit(
        self,
        spec: JobSpec,
        plan: Plan | None = None,
        *,
        secrets: Secrets | None = None,
        patience: float | None = PATIENCE,
        told: Callable[[Held], None] | None = None,
        progress: Callable[[Progress], None] | None = None,
    ) -> Job:
        """See `AsyncCluster.submit`; `told` and `progress` are called in another thread."""
        work = self._cluster.submit(spec, plan, secrets=secrets, patience=patience, told=told, progress=progress)
        return Job(self._loop, self._loop.wait(work))

    def send_code(self, code: Code, *, progress: Callable[[Progress], None] | None = None) -> None:
        """See `AsyncCluster.send_code`; `progress` is called in another thread."""
        self._loop.wait(self._cluster.send_code(code, progress=progress))

    def push(
        self, local: str | Path, remote: str = "", *, progress: Callable[[Progress], None] | None = None
    ) -> Pushed:
        """See `AsyncCluster.push`."""
        return self._loop.wait(self._cluster.push(Path(local), remote, progress=progress))

    def pull(
        self, remote: str, local: str | Path | None = None, *, progress: Callable[[Progress], None] | None = None
    ) -> PullReport:
        """See `AsyncCluster.pull`."""
        place = None if local is None else Path(local)
        return self._loop.wait(self._cluster.pull(remote, place, progress=progress))

    def list_path(self, path: str, *, names: bool = True) -> Listing:
        """See `AsyncCluster.list_path`."""
        return self._loop.wait(self._cluster.list_path(path, names=names))

    def map(
        self,
        work: Work,
        items: Iterable[object],
        *,
        limit: int | None = None,
        secrets: Secrets | None = None,
        **fields: Any,
    ) -> Job:
        """See `AsyncCluster.map`."""
        job = self._loop.wait(self._cluster.map(work, items, limit=limit, secrets=secrets, **fields))
        return Job(self._loop, job)

    def clean(self, paths: Sequence[str]) -> Removed:
        """See `AsyncCluster.clean`."""
        return self._loop.wait(self._cluster.clean(paths))

    def jobs(self, *, everything: bool = False) -> tuple[JobRecord, ...]:
        """See `AsyncCluster.jobs`."""
        return self._loop.wait(self._cluster.jobs(everything=everything))

    def events(
        self, jobs: Sequence[Job] = (), *, after: int = 0, follow: bool = False, interval: float | None = None
    ) -> Iterator[JobEvent]:
        """See `AsyncCluster.events`."""
        chosen = [job.asynchronous for job in jobs]
        return self._loop.iterate(self._cluster.events(chosen, after=after, follow=follow, interval=interval))

    def attend(self, told: Callable[[JobEvent], None]) -> Callable[[], None]:
        """Look after all jobs in the background, as whoever follows them does; calling the result ends that.

        Args:
            told: called in another thread with what happens from now on; it must not wait for this object.
        """
        return self._loop.begin(self._cluster.attend(told))

    def adopt_all(self) -> Adopted:
        """See `AsyncCluster.adopt_all`."""
        return self._loop.wait(self._cluster.adopt_all())

    def find(self, references: Sequence[str]) -> tuple[Job, ...]:
        """See `AsyncCluster.find`."""
        return tuple(Job(self._loop, job) for job in self._loop.wait(self._cluster.find(references)))

    def adopt(self, job_id: str) -> Job:
        """See `AsyncCluster.adopt`."""
        return Job(self._loop, self._loop.wait(self._cluster.adopt(job_id)))

    def close(self) -> None:
        """End what this object started; closing again does nothing."""
        if not self._loop.closed:
            self._loop.wait(self._cluster.close())
            self._loop.close()

    def __enter__(self) -> Cluster:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


async def _made(profile: ClusterProfile) -> AsyncCluster:
    """Made in the loop's own thread, for the store belongs to the thread that opened it."""
    return AsyncCluster(profile)


class Job:
    """A job on a cluster."""

    def __init__(self, loop: _Loop, job: AsyncJob) -> None:
        self._loop = loop
        self._job = job

    @property
    def id(self) -> str:
        """Towline's id of the job."""
        return self._job.id

    @property
    def name(self) -> str:
        """The user's name for the job."""
        return self._job.name

    @property
    def asynchronous(self) -> AsyncJob:
        """The same job for asynchronous code in the cluster's own loop."""
        return self._job

    @property
    def reference(self) -> str:
        """See `AsyncJob.reference`."""
        return self._job.reference

    @property
    def record(self) -> JobRecord:
        """The job as it was last known here."""
        return self._job.record

    def status(self) -> JobRecord:
        """See `AsyncJob.status`."""
        return self._loop.wait(self._job.status())

    def why(self) -> Diagnosis | None:
        """See `AsyncJob.why`."""
        return self._loop.wait(self._job.why())

    def summary(self) -> JobSummary:
        """See `AsyncJob.summary`."""
        return self._loop.wait(self._job.summary())

    def tasks(self) -> tuple[Job, ...]:
        """See `AsyncJob.tasks`."""
        return tuple(Job(self._loop, job) for job in self._job.tasks())

    def follow(
        self,
        *,
        tail: int | None = None,
        choice: LogChoice | None = None,
        logs: bool = True,
        interval: float | None = None,
    ) -> Iterator[Event]:
        """See `AsyncJob.follow`."""
        return self._loop.iterate(
            self._job.follow(tail=tail, choice=choice or LogChoice(), logs=logs, interval=interval)
        )

    def logs(
        self, *, follow: bool = False, tail: int | None = None, choice: LogChoice | None = None
    ) -> Iterator[LogChunk]:
        """The job's log: as far as it is written now, or with `follow` until the job has ended."""
        if not follow:
            return self._loop.iterate(self._job.read_logs(tail=tail, choice=choice or LogChoice()))
        return (event for event in self.follow(tail=tail, choice=choice) if isinstance(event, LogChunk))

    def exec(self, command: Sequence[str], *, place: Place | None = None) -> Ran:
        """See `AsyncJob.exec`."""
        return self._loop.wait(self._job.exec(command, place=place))

    def gpus(self) -> tuple[GpuReading, ...]:
        """See `AsyncJob.gpus`."""
        return self._loop.wait(self._job.gpus())

    def wait(self, timeout: float | None = None, *, interval: float | None = None) -> JobRecord:
        """See `AsyncJob.wait`."""
        return self._loop.wait(self._job.wait(timeout, interval=interval))

    def gather(self, *, timeout: float | None = None, partial: bool = False) -> list[Json]:
        """See `AsyncJob.gather`."""
        return self._loop.wait(self._job.gather(timeout=timeout, partial=partial))

    def pause(self) -> JobRecord:
        """See `AsyncJob.pause`."""
        return self._loop.wait(self._job.pause())

    def resume(self) -> JobRecord:
        """See `AsyncJob.resume`."""
        return self._loop.wait(self._job.resume())

    def cancel(self, *, confirm: bool = True) -> JobRecord:
        """See `AsyncJob.cancel`."""
        return self._loop.wait(self._job.cancel(confirm=confirm))

    def delivery(self) -> str:
        """See `AsyncJob.delivery`."""
        return self._loop.wait(self._job.delivery())

    def results(self) -> tuple[ResultFile, ...]:
        """See `AsyncJob.results`."""
        return self._loop.wait(self._job.results())

    def pull_results(
        self,
        dest: str | Path,
        *,
        only: Sequence[str] = (),
        progress: Callable[[Progress], None] | None = None,
    ) -> PullReport:
        """See `AsyncJob.pull_results`."""
        return self._loop.wait(self._job.pull_results(Path(dest), only=only, progress=progress))

    def keep_pulling(self, dest: str | Path, *, only: Sequence[str] = ()) -> Iterator[PullReport | NoAnswer]:
        """See `AsyncJob.keep_pulling`."""
        return self._loop.iterate(self._job.keep_pulling(Path(dest), only=only))
