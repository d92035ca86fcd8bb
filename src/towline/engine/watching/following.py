"""Following a job: its state as it changes, and every byte of its log once and in order.

The job's own files are looked at often, which costs the scheduler nothing; they tell when it started and when
it wrote its end. The queue is asked at its own, slower pace, and at once when the files say that something happened.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

from towline.engine.events import Event, LogChunk, NoAnswer, StateChanged
from towline.engine.outcomes import expect_done
from towline.engine.session import Session
from towline.engine.watching.pace import pace_of_end, pace_of_files
from towline.engine.watching.poller import Interest
from towline.models.errors import NotFound, OutcomeUnknown, TowlineError, Unreachable, WaitTimedOut
from towline.models.job import JobRecord, JobState
from towline.remote.base import Operation
from towline.storage.logs import MOST_BYTES, LogAnswer, log_arguments, log_files, parse_logs, parse_tail
from towline.storage.scripts import script

PATIENCE = 600.0
"""Seconds without any answer from the cluster until following gives up."""

_MISSING = 44


@dataclass
class _Reader:
    """How far the log of one attempt was read."""

    session: Session
    record: JobRecord
    attempt: int = 1
    offsets: dict[str, int] = field(init=False)

    def __post_init__(self) -> None:
        self._files = log_files(self.record.task, self.record.roles)
        self.offsets = dict.fromkeys(self._files, 0)

    async def look(self) -> LogAnswer:
        """One look at the attempt's files, from where the last one ended."""
        arguments = log_arguments(self.record.directory, self.attempt, self.offsets, self.record.task)
        outcome = await self.session.run(Operation("read logs", script("read-logs"), arguments, repeats=True))
        return parse_logs(expect_done(outcome, "reading the log", {_MISSING: _gone(self.record)}))

    def take(self, answer: LogAnswer) -> tuple[LogChunk, ...]:
        """The answer's new bytes; the offsets move on."""
        chunks: list[LogChunk] = []
        for each in answer.slices:
            self.offsets[each.name] += len(each.data)
            if each.data:
                chunks.append(LogChunk(self._files[each.name].stream, each.data, self._files[each.name].role))
        return tuple(chunks)

    async def skip_to_tail(self, lines: int) -> None:
        """Move to the last lines of each file."""
        arguments = (self.record.directory, str(self.attempt), str(lines), *self.offsets)
        outcome = await self.session.run(Operation("tail logs", script("tail-logs"), arguments, repeats=True))
        self.offsets = parse_tail(expect_done(outcome, "reading the log", {_MISSING: _gone(self.record)}))

    def move_to(self, attempt: int) -> None:
        """Begin with another attempt's files."""
        self.attempt = attempt
        self.offsets = dict.fromkeys(self.offsets, 0)


async def read_logs(session: Session, record: JobRecord, *, tail: int | None) -> AsyncIterator[LogChunk]:
    """The newest attempt's log as far as it is written now."""
    reader = _Reader(session, record, attempt=max(record.last.number, 1))
    if tail is not None:
        await reader.skip_to_tail(tail)
    answer = await reader.look()
    if answer.newest > reader.attempt:
        reader.move_to(answer.newest)
        if tail is not None:
            await reader.skip_to_tail(tail)
        answer = await reader.look()
    while chunks := reader.take(answer):
        for chunk in chunks:
            yield chunk
        answer = await reader.look()


async def follow(
    session: Session, record: JobRecord, *, logs: bool = True, tail: int | None = None
) -> AsyncIterator[Event]:
    """State changes and, with `logs`, the log as it grows, until the job has ended and the last byte is there.

    A connection that fails is tried again with growing pauses. Of an array the state is told only: its tasks have a log
    each.

    Raises:
        Unreachable: the cluster did not answer for `PATIENCE` seconds.
        NotFound: the job's directory is gone.
    """
    with session.poller.following(record) as interest:
        watch = _Watch(session, interest, logs)
        if tail is not None and logs:
            await watch.reader.skip_to_tail(tail)
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

    def __init__(self, session: Session, interest: Interest, logs: bool) -> None:
        self.session = session
        self._interest = interest
        self.record = record = interest.record
        self.reader = _Reader(session, record, attempt=max(record.last.number, 1))
        if not logs or record.tasks is not None:
            self.reader.offsets = {}
        self.finished = False
        self._more = False
        self._files = pace_of_files()
        self._closing = pace_of_end()
        self._sign = ""
        self._end_written = False
        self._heard = time.monotonic()
        self._silent = False
        self._there = False

    async def look(self) -> AsyncIterator[Event]:
        """One look at the files, and at the queue when its time has come or the files say so."""
        end_was_known = self.record.state.ended
        answer = await self._look_at_files()
        if self._vanished(answer):
            yield NoAnswer(f"{self.record.directory} is gone from the cluster, and the log with it")
        if not end_was_known:
            async for event in self._take_turn(soon=self._has_news(answer)):
                yield event
        chunks = self.reader.take(answer) if answer else ()
        for chunk in chunks:
            yield chunk
        self._more = any(len(chunk.data) >= MOST_BYTES for chunk in chunks)
        if chunks:
            self._files.happened()
        elif answer and answer.newest > self.reader.attempt:
            self.reader.move_to(answer.newest)
        else:
            # The look began after the end was known and brought nothing: the last byte is there.
            self.finished = end_was_known

    def _vanished(self, answer: LogAnswer | None) -> bool:
        """Whether the job's directory was there at the last look and is not any more."""
        was_there, self._there = self._there, answer is not None
        return was_there and answer is None

    async def _look_at_files(self) -> LogAnswer | None:
        try:
            return await self.reader.look()
        except NotFound:
            return None

    def _has_news(self, answer: LogAnswer | None) -> bool:
        """Whether the files show that the state must have changed since the queue was asked."""
        self._end_written = bool(answer and answer.ended)
        started = bool(answer and any(each.size >= 0 for each in answer.slices))
        sign = f"{answer.newest if answer else 0} {started}"
        changed, self._sign = sign != self._sign, sign
        return changed or self._end_written

    async def _take_turn(self, *, soon: bool) -> AsyncIterator[Event]:
        before = self.record
        self.record = await self.session.poller.turn(self._interest, soon=soon)
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
        if self._more:
            return 0.0
        return self._closing.quiet() if self._end_written or self.record.state.ended else self._files.quiet()


def _gone(record: JobRecord) -> NotFound:
    if record.state in (JobState.SUBMITTING, JobState.REFUSED):
        return NotFound(
            f"job {record.id} has no log: it is {record.state}",
            why=record.note,
            fix="`towline status` says what is known of it.",
        )
    return NotFound(
        f"the directory of job {record.id} is not on the cluster",
        why=f"{record.directory} is not there or may not be read.",
        fix="It may have been removed there; `towline status` shows what is still known.",
    )
