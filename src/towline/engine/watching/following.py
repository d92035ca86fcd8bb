"""Following a job: its state as it changes, and every byte of its log once and in order.

The job's own files are looked at often, which costs the scheduler nothing; they tell when it started and when
it wrote its end. The queue is asked at its own, slower pace, and at once when the files say that something happened.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable

from towline.engine.events import Event, LogChunk, NoAnswer, StateChanged
from towline.engine.session import Session
from towline.engine.watching.pace import pace_of_end, pace_of_files
from towline.engine.watching.poller import Interest, Poller
from towline.engine.watching.reading import ALL, LogReader
from towline.models.errors import NotFound, OutcomeUnknown, TowlineError, Unreachable, WaitTimedOut
from towline.models.job import JobRecord, JobState
from towline.storage.logs import LogAnswer, LogChoice

PATIENCE = 600.0
"""Seconds without any answer from the cluster until following gives up."""

_FEW_TASKS = 200
_AGAIN_SECONDS = 0.5


async def read_logs(
    session: Session, record: JobRecord, *, tail: int | None = None, choice: LogChoice = ALL
) -> AsyncIterator[LogChunk]:
    """The log of the newest attempt that has begun, or of the one chosen, as far as it is written now."""
    reader = LogReader(session, record, choice, tail, to_now=True)
    while True:
        answer = await reader.look()
        chunks = [event for event in reader.take(answer) if isinstance(event, LogChunk)]
        for chunk in chunks:
            yield chunk
        if reader.done:
            return
        if not chunks:
            await asyncio.sleep(_AGAIN_SECONDS)  # a file is shorter than it was, or gone: until that is sure


async def follow(
    session: Session,
    record: JobRecord,
    *,
    logs: bool = True,
    tail: int | None = None,
    choice: LogChoice = ALL,
    interval: float | None = None,
) -> AsyncIterator[Event]:
    """State changes and, with `logs`, the log as it grows, until the job has ended and the last byte is there.

    A connection that fails is tried again with growing pauses. Of an array the logs of all tasks are followed together.

    Raises:
        Unreachable: the cluster did not answer for `PATIENCE` seconds.
        NotFound: the job's directory is gone.
        UsageError: the job has no such log.
    """
    reader = LogReader(session, record, choice, tail, max(record.last.number, 1))
    with session.part(Poller).following(record, interval=interval) as interest:
        watch = _Watch(session, interest, reader, logs)
        while not watch.finished:
            try:
                async for event in watch.look():
                    yield event
                watch.heard()
            except (Unreachable, OutcomeUnknown, WaitTimedOut) as error:
                if watch.missed(error):
                    yield NoAnswer(error.why or error.what)
            if not watch.finished:
                await asyncio.sleep(watch.pause())


class _Watch:
    """One job under watch: what was seen last, and when to look again."""

    def __init__(self, session: Session, interest: Interest, reader: LogReader, logs: bool) -> None:
        self.session = session
        self._interest = interest
        self.record = interest.record
        self.reader = reader
        self.finished = False
        self._logs = logs
        self._files = pace_of_files()
        self._closing = pace_of_end()
        self._sign = ""
        self._end_written = False
        self._heard = time.monotonic()
        self._silent = False
        self._there = False

    async def look(self) -> AsyncIterator[Event]:
        """One look at the files, and at the queue when its time has come or the files say so."""
        end_was_known, tasks_before = self.record.state.ended, self._tasks(lambda state: state.ended)
        answer = await self._look_at_files()
        if self._vanished(answer):
            yield NoAnswer(f"{self.record.directory} is gone from the cluster, and the log with it")
        if not end_was_known:
            news = self._has_news(answer)
            if news:
                self._files.happened()
            async for event in self._take_turn(soon=news):
                yield event
        if not answer:
            self.finished = end_was_known
            return
        for event in self.reader.take(answer):
            yield event
        self.reader.drop_drained(answer, tasks_before)
        if self.reader.quiet:
            # The look began after the end was known and brought nothing: the last byte is there.
            self.finished = end_was_known or self._attempt_is_over(answer)
        else:
            self._files.happened()

    def _attempt_is_over(self, answer: LogAnswer) -> bool:
        """Whether only one attempt is followed, and it has ended or others have begun after it."""
        only = self.reader.choice.attempt
        return bool(only) and (
            answer.attempt(only).ended or any(each.begun for each in answer.attempts if each.number > only)
        )

    def _tasks(self, wanted: Callable[[JobState], bool]) -> set[int]:
        tasks = self.record.tasks
        return {number for number, state in tasks.states().items() if wanted(state)} if tasks else set()

    def _vanished(self, answer: LogAnswer | None) -> bool:
        """Whether the job's directory was there at the last look and is not any more."""
        was_there, self._there = self._there, answer is not None
        return was_there and answer is None

    async def _look_at_files(self) -> LogAnswer | None:
        if not self._logs:
            self.reader.tasks = set()
        elif self.record.tasks:
            self.reader.tasks = self._tasks_to_read()
        try:
            return await self.reader.look()
        except NotFound:
            return None

    def _tasks_to_read(self) -> set[int]:
        """Tasks that have begun, as far as is known; of few all, for a task may begin and end between two polls."""
        all_of_them = self._tasks(lambda state: True) - self.reader.over
        if len(all_of_them) <= _FEW_TASKS:
            return all_of_them
        return self._tasks(lambda state: state is not JobState.PENDING) - self.reader.over

    def _has_news(self, answer: LogAnswer | None) -> bool:
        """Whether the files show that the state must have changed since the queue was asked."""
        attempts = answer.attempts if answer else ()
        # A job that waits for its next start has an end, too.
        ended = bool(attempts and attempts[-1].ended and not self.record.tasks)
        self._end_written = ended and self.record.state is not JobState.PENDING
        begun, over = sum(each.begun for each in attempts), sum(each.ended for each in attempts)
        sign = f"{len(attempts)} {begun} {over} {self.reader.seen if self.record.tasks else 0}"
        changed, self._sign = sign != self._sign, sign
        return changed or self._end_written

    async def _take_turn(self, *, soon: bool) -> AsyncIterator[Event]:
        before = self.record
        self.record = await self.session.part(Poller).turn(self._interest, soon=soon)
        if self.record != before:
            yield StateChanged(self.record)

    def heard(self) -> None:
        """The cluster answered."""
        self._heard, self._silent = time.monotonic(), False

    def missed(self, error: TowlineError) -> bool:
        """The cluster did not answer: whether that is news; give up when it has lasted too long."""
        if time.monotonic() - self._heard > PATIENCE:
            raise error
        news, self._silent = not self._silent, True
        return news

    def pause(self) -> float:
        """Seconds until the next look: none while more is waiting there, few once the job has written its end."""
        if self.reader.more:
            return 0.0
        return self._closing.quiet() if self._end_written or self.record.state.ended else self._files.quiet()
