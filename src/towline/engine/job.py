"""`AsyncJob`: one job on a cluster, and what can be done with it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from towline.engine import cancelling, homecoming, mapping, pausing
from towline.engine.data import delivering
from towline.engine.events import Event, LogChunk, NoAnswer, Progress, PullReport, ResultFile, StateChanged
from towline.engine.inside import entering, holding
from towline.engine.inside.entering import GpuReading, Place, Ran
from towline.engine.session import Session
from towline.engine.staging import keeping
from towline.engine.watching import following, observation, summing, waiting, why
from towline.engine.watching.arrays import task_of
from towline.engine.watching.reading import ALL
from towline.models.diagnosis import Diagnosis
from towline.models.errors import WaitTimedOut
from towline.models.job import JobRecord
from towline.models.summary import JobSummary
from towline.models.values import Json
from towline.remote.base import Sink
from towline.storage.logs import LogChoice


class AsyncJob:
    """A job on a cluster.

    Attributes:
        record: the job as it was last known here.
    """

    def __init__(self, session: Session, record: JobRecord) -> None:
        self._session = session
        self.record = record

    @property
    def id(self) -> str:
        """Towline's id of the job."""
        return self.record.id

    @property
    def name(self) -> str:
        """The user's name for the job."""
        return self.record.name

    @property
    def reference(self) -> str:
        """What names the job to every command and in `JobSpec.depends_on`."""
        return self.record.reference

    async def status(self) -> JobRecord:
        """The job after one poll."""
        (self.record,) = await observation.poll(self._session, [self.record])
        return self.record

    async def summary(self) -> JobSummary:
        """What the job asks for and has used; for one that waits also why, and what would let it start sooner.

        That takes a round trip; what stands in its way is no error.
        """
        return await summing.summary(self._session, self.record)

    async def why(self) -> Diagnosis | None:
        """Why the job ended, or why it had to start again; None when it did not fail or nothing shows why.

        The first time its logs are searched on the cluster, in one round trip; what was found is kept. Of an array it
        is about its first failed task, and `record.tasks.failures` has what was found of each.

        Raises:
            Unreachable, WaitTimedOut, OutcomeUnknown, RemoteFault: the logs could not be searched.
        """
        if self.record.tasks is not None:
            self.record = await why.explain_tasks(self._session, self.record)
            first = why.attempt_to_explain(self.record)
            return first.diagnosis if first else None
        found = await why.explain(self._session, self.record)
        attempt = why.attempt_to_explain(self.record)
        if found and attempt:
            self.record = why.with_diagnosis(self.record, attempt.number, found)
        return found

    async def explained(self) -> JobRecord:
        """The job with the diagnosis of its end, as far as that can be had: what stands in the way is no error."""
        self.record = await why.explained(self._session, self.record)
        return self.record

    def tasks(self) -> tuple[AsyncJob, ...]:
        """The tasks of an array, each as a job; none for any other job."""
        numbers = sorted(self.record.tasks.numbers) if self.record.tasks else ()
        return tuple(AsyncJob(self._session, task_of(self.record, number)) for number in numbers)

    async def follow(
        self,
        *,
        tail: int | None = None,
        choice: LogChoice = ALL,
        logs: bool = True,
        interval: float | None = None,
    ) -> AsyncIterator[Event]:
        """State changes and the log as it grows; ends when the job has ended and the last byte is there.

        Of an array the logs of all tasks come together.

        Args:
            tail: begin with this many last lines of each file instead of the whole log.
            choice: which of the log files; with an attempt it ends when that one is over.
            logs: whether the log is wanted at all.
            interval: seconds between two looks at the queue, 2 or more; the profile's when not given.
        """
        events = following.follow(self._session, self.record, logs=logs, tail=tail, choice=choice, interval=interval)
        async for event in events:
            if isinstance(event, StateChanged):
                self.record = event.record
            yield event

    async def read_logs(self, *, tail: int | None = None, choice: LogChoice = ALL) -> AsyncIterator[LogChunk]:
        """The newest attempt's log as far as it is written now, one file after another.

        Args:
            tail: this many last lines of each file instead of the whole log.
            choice: which of the log files, and of which attempt.
        """
        async for chunk in following.read_logs(self._session, self.record, tail=tail, choice=choice):
            yield chunk

    async def exec(self, command: Sequence[str], *, place: Place | None = None, sink: Sink | None = None) -> Ran:
        """Run a command inside the running job: on the node of one of its ranks, and in that rank's container.

        Args:
            command: the program and its arguments.
            place: beside which rank; the lowest that runs when not given.
            sink: takes what it writes to stdout as it arrives.

        Raises:
            NotFound: the job does not run, or no such rank.
        """
        return await entering.run_inside(self._session, self.record, command, place or Place(), sink)

    async def attend(self, command: Sequence[str] = (), *, place: Place | None = None, terminal: bool = True) -> int:
        """The same with this process's stdin, stdout and stderr; a shell when there is no command. Gives the exit code.

        Args:
            command: the program and its arguments.
            place: beside which rank; the lowest that runs when not given.
            terminal: whether it gets a terminal, for which this process must have one.
        """
        return await entering.attend(self._session, self.record, command, place or Place(), terminal=terminal)

    @asynccontextmanager
    async def held(self) -> AsyncGenerator[None, None]:
        """Have an allocation that `inside.holding.allocation` describes kept; it ends behind the block.

        When this process dies the allocation ends two minutes later.
        """
        async with holding.held(self._session, self.record):
            yield

    async def gpus(self) -> tuple[GpuReading, ...]:
        """What every GPU of the running job does now.

        Raises:
            NotFound: the job does not run.
            RemoteFault: its nodes tell of no GPUs.
        """
        return await entering.read_gpus(self._session, self.record)

    async def wait(self, timeout: float | None = None, *, interval: float | None = None) -> JobRecord:
        """The job once it has ended.

        Args:
            timeout: seconds to wait at most; 0 looks once.
            interval: seconds between two looks at the queue, 2 or more; the profile's when not given.

        Raises:
            WaitTimedOut: the job was still going then.
        """
        if timeout is not None and (await self.status()).state.ended:
            return self.record
        try:
            await asyncio.wait_for(self._ended(interval), timeout)
        except asyncio.TimeoutError:
            if self.record.state.ended:
                return self.record
            raise WaitTimedOut(
                f"job {self.id} is still {self.record.state}",
                why=f"It was waited for {timeout:g} s.",
                fix=f"Wait on with `towline wait {self.id}`; the job goes on meanwhile.",
            ) from None
        return self.record

    async def _ended(self, interval: float | None) -> None:
        changes = waiting.changes(self._session, self.record, patience=following.PATIENCE, interval=interval)
        async for event in changes:
            if isinstance(event, StateChanged):
                self.record = event.record

    async def gather(self, *, timeout: float | None = None, partial: bool = False) -> list[Json]:
        """What the tasks of an array made, in the order of their numbers, once all have ended.

        That is what a mapped function returned (or any command left as `return.json` in its results directory), else
        the task's stdout as text.

        Args:
            timeout: seconds to wait at most.
            partial: give None for tasks that did not succeed, instead of raising an error.

        Raises:
            TasksFailed: some did not succeed.
            WaitTimedOut: they were still going then.
        """
        return await mapping.gather(self._session, await self.wait(timeout), partial=partial)

    async def pause(self) -> JobRecord:
        """Hold the job, or have it stop and wait; see `towline.engine.pausing.pause`."""
        self.record = await pausing.pause(self._session, self.record)
        return self.record

    async def resume(self) -> JobRecord:
        """Let the paused job go on; see `towline.engine.pausing.resume`."""
        self.record = await pausing.resume(self._session, self.record)
        return self.record

    async def cancel(self, *, confirm: bool = True) -> JobRecord:
        """Cancel the job for good and see that it has ended; a job that has ended stays as it is.

        Args:
            confirm: wait for the end; without it Slurm is told, and looked at once.
        """
        self.record = await cancelling.cancel(self._session, self.record, confirm=confirm)
        return self.record

    async def results(self) -> tuple[ResultFile, ...]:
        """The files below the job's results directory."""
        return await homecoming.list_results(self._session, self.record)

    async def delivery(self) -> str:
        """A sentence about the outputs that go elsewhere once the job has succeeded; empty when it has none."""
        places = delivering.places(self._session.store.spec(self.record.id), self.record.task)
        return delivering.told(await delivering.delivery(self._session, self.record), places) if places else ""

    async def pull_results(
        self, dest: Path, *, only: Sequence[str] = (), progress: Callable[[Progress], None] | None = None
    ) -> PullReport:
        """Bring the results home into a directory, which is made; files of the same names are replaced.

        What is there with the same size and time is not sent again, and a pull that was cut goes on where it was.

        Args:
            dest: the local directory.
            only: patterns such as `*.pt` or `checkpoints/`, in the manner of ignore files; all files when empty.
            progress: called now and then, in another thread.

        Raises:
            TransferFailed: not everything arrived, or it could not be written here.
        """
        return await homecoming.pull(self._session, self.record, dest, only=only, progress=progress)

    async def keep_pulling(
        self, dest: Path, *, only: Sequence[str] = (), progress: Callable[[Progress], None] | None = None
    ) -> AsyncIterator[PullReport | NoAnswer]:
        """Pull what is new until the job has ended; each file comes once nothing writes to it any more.

        Args:
            dest: the local directory.
            only: as `pull_results` takes it.
            progress: called now and then, in another thread.
        """
        async for report in keeping.keep_pulling(self._session, self.record, dest, only, progress):
            yield report
