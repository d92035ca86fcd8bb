"""One look at the queue for all jobs of a cluster and of all of a user's processes.

Whoever follows jobs takes turns here. A turn costs next to nothing: it reads what any process has written into the
store, and looks at the cluster only when that is due and this process has the lease.
"""

from __future__ import annotations

import contextlib
import dataclasses
import time
from collections.abc import Generator, Iterable

from towline.engine.session import Session
from towline.engine.watching import observation
from towline.engine.watching.arrays import task_of
from towline.engine.watching.lease import Lease
from towline.engine.watching.pace import JOBS_PER_SECOND, SHORTEST_INTERVAL, Moment, QueuePace, pace_of_files
from towline.models.errors import TowlineError, WaitTimedOut
from towline.models.job import JobRecord, JobState
from towline.slurm.calls import PollTarget
from towline.slurm.poll import AttemptFiles

_NEW_SECONDS = 60.0
"""A job is new for so long after its submission."""
_TURN_SECONDS, _TURNS_PER_SECOND = 0.5, 1000


@dataclasses.dataclass
class Interest:
    """A job that this process follows.

    Attributes:
        record: the job as it was last known here.
        files: whether its own files are looked at here, too; whoever reads its log does that anyway.
    """

    record: JobRecord
    files: bool


class Poller:
    """One process's looks at one cluster. Objects are for one event loop.

    Args:
        session: the cluster.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self._interval = session.profile.poll_interval
        self._lease = Lease(session.store, session.profile.name)
        self._pace = QueuePace(self._interval, time.time())
        self._interests: list[Interest] = []
        self._intervals: list[float] = []
        self._known: dict[str, JobRecord] = {}
        self._version: tuple[int, int] | None = None
        self._mark = 0
        self._files = pace_of_files()
        self._files_due = 0.0
        self._looking = False
        self._ending = False  # some job has ended, as its files say, and Slurm does not say so yet
        self._asked = 0.0
        self._asked_for = 0.0
        self._hinted = 0.0
        self._trouble: TowlineError | None = None

    @contextlib.contextmanager
    def attending(self, interval: float | None = None) -> Generator[None, None, None]:
        """Take turns meanwhile, for all jobs of the cluster.

        Args:
            interval: seconds between two looks at the queue, at least `SHORTEST_INTERVAL`; else the profile's.
        """
        wanted = self._interval if interval is None else max(interval, SHORTEST_INTERVAL)
        self._intervals.append(wanted)
        self._change_interval()
        try:
            yield
        finally:
            self._intervals.remove(wanted)
            self._change_interval()
            if not self._intervals:
                self._lease.release()

    @contextlib.contextmanager
    def following(
        self, record: JobRecord, *, files: bool = False, interval: float | None = None
    ) -> Generator[Interest, None, None]:
        """Follow a job meanwhile.

        Args:
            record: the job as it is known.
            files: look at its own files, too, so that its end is noticed soon.
            interval: as `attending` takes it.
        """
        interest = Interest(record, files and record.tasks is None and record.task is None)
        with self.attending(interval):
            self._interests.append(interest)
            try:
                yield interest
            finally:
                self._interests.remove(interest)

    def _change_interval(self) -> None:
        """The shortest that is wanted counts; a longer one only when nobody here wants a shorter one."""
        self._pace.interval = min(self._intervals, default=self._interval)

    async def turn(self, interest: Interest, *, soon: bool = False) -> JobRecord:
        """The job as any process knows it now, after a look at the cluster if that is due here.

        Args:
            interest: from `following`.
            soon: something has happened to the job, so that a look is worth while.

        Raises:
            Unreachable, OutcomeUnknown, WaitTimedOut, RemoteFault: the last look of this process had no answer.
        """
        if soon:
            self._hint(time.time())
        await self.keep_up()
        return await self._current(interest)

    async def keep_up(self) -> None:
        """See that the store is as new as its readers wish: look at the cluster, if that is due here.

        Raises:
            Unreachable, OutcomeUnknown, WaitTimedOut, RemoteFault: the last look of this process had no answer.
        """
        self._read()
        if not self._looking:
            self._looking = True
            try:
                await self._look_where_due(time.time())
            except TowlineError as error:
                self._trouble = error
            finally:
                self._looking = False
        if self._trouble:
            raise self._trouble

    @property
    def heard(self) -> float:
        """When the cluster was heard of last by any process, in seconds since 1970; 0 for never."""
        return self._lease.turn().polled

    async def _look_where_due(self, now: float) -> None:
        if now >= self._files_due and any(each.files and not each.record.state.ended for each in self._interests):
            await self._look_at_files()
        if self._lease.take():
            if now >= self._pace.due:
                await self._look_at_queue()
        else:
            self._trouble = None
            self._wish(now)

    def _hint(self, now: float) -> None:
        self._pace.hint(now)
        self._hinted = now

    def _wish(self, now: float) -> None:
        """Ask the one that has the lease for a look, where one is wanted sooner than it may have in mind."""
        begun = self._lease.turn().begun
        if self._hinted > max(begun, self._asked):
            self._lease.want(now)
            self._asked = now
        by = begun + self._pace.interval
        if self._pace.interval < self._interval and by != self._asked_for:
            self._lease.want(by)
            self._asked_for = by

    # --- What others have written ---

    def _read(self) -> None:
        """Take over what was written into the store since the last turn."""
        version = self._session.store.version()
        if version == self._version:
            return
        self._version = version
        records, self._mark = self._session.store.changed_since(self._session.profile.name, self._mark)
        fresh = [each for each in records if each.id not in self._known and not each.state.ended]
        self._known |= {each.id: each for each in records}
        if any(time.time() - each.created < _NEW_SECONDS for each in fresh):
            self._pace.submitted(time.time())
        turn = self._lease.turn()
        if turn.wanted is not None:
            self._pace.wanted(turn.wanted)

    async def _current(self, interest: Interest) -> JobRecord:
        """The job as the store has it; of an array's task, what is told of it when its state has changed."""
        record = self._known.get(interest.record.id, interest.record)
        if interest.record.task is None:
            interest.record = record
        elif record.tasks is not None:
            task = task_of(record, interest.record.task)
            if task.state is not interest.record.state or (task.state.ended and not interest.record.last.slurm_state):
                (interest.record,) = await observation.poll(self._session, [task])
        return interest.record

    # --- Looks at the cluster ---

    async def _look_at_queue(self) -> None:
        """One look for every job of the cluster that has not ended, whichever process follows it."""
        records = [each for each in self._known.values() if not each.state.ended]
        begun = self._lease.begin()
        try:
            look = await observation.look(self._session, records)
        except TowlineError as error:
            self._pace.failed(time.time(), busy=isinstance(error, WaitTimedOut))
            raise
        self._trouble = None
        self._lease.answered()
        # Of the others somebody else may have written something newer meanwhile.
        self._known |= {new.id: new for old, new in zip(records, look.records, strict=True) if new is not old}
        now = time.time()
        if look.answer and (look.answer.busy or look.answer.unanswered):
            self._pace.failed(now, busy=look.answer.busy)
        else:
            self._pace.looked(now, moment_of(records, look, now - begun))
        self._read()

    async def _look_at_files(self) -> None:
        """One look at the files of the jobs that are followed here; it costs the scheduler nothing."""
        followed = (self._known.get(each.record.id, each.record) for each in self._interests if each.files)
        wanted = {each.id: each for each in followed if not each.state.ended}
        answer = await observation.ask(
            self._session, [PollTarget(each.id, each.last.number) for each in wanted.values()]
        )
        self._trouble = None
        found = [
            (each, answer.attempts.get((each.id, each.last.number, None), AttemptFiles())) for each in wanted.values()
        ]
        self._ending = any(files.end is not None for _, files in found)
        if any(_has_news(each, files) for each, files in found):
            self._hint(time.time())
            self._files.happened()
        self._files_due = time.time() + max(self._files.quiet(), len(wanted) / JOBS_PER_SECOND)

    def pause(self) -> float:
        """Seconds until the next turn of each that follows a job here; with very many they are rarer."""
        return 0.2 if self._ending else max(_TURN_SECONDS, len(self._intervals) / _TURNS_PER_SECOND)

    def close(self) -> None:
        """Leave the looking to others."""
        self._lease.release()


def _has_news(record: JobRecord, files: AttemptFiles) -> bool:
    """Whether the job's files say that it began, was started again or ended, which Slurm has not said yet."""
    if files.end is not None or files.newest > record.last.number:
        return True
    return files.start is not None and record.state in (JobState.SUBMITTING, JobState.PENDING)


def moment_of(before: Iterable[JobRecord], look: observation.Look, took: float) -> Moment:
    """What a look has shown of what comes next."""
    states = {record.reference: record.state for record in before}
    alive = [record for record in look.records if not record.state.ended]
    now = look.answer.now if look.answer else None
    rows = look.answer.queue.values() if look.answer and now else ()
    ends = [row.ended - now for row in rows if now and row.ended and row.state is JobState.RUNNING]
    starts = [row.started - now for row in rows if now and row.started and row.state is JobState.PENDING]
    return Moment(
        took,
        changed=any(states.get(record.reference) is not record.state for record in look.records),
        waiting=bool(alive) and all(record.state is JobState.PENDING for record in alive),
        next_end=min((each for each in ends if each > 0), default=None),
        next_start=min((each for each in starts if each > 0), default=None),
        arrays=any(record.tasks is not None and record.state is JobState.RUNNING for record in alive),
    )
