"""Reading a job's log files: how far each was read, and which of the bytes that came are new.

An answer counts only when it is whole, and an offset moves on only with an answer: what is lost on the way is asked for
again. Every byte comes once and in order for each file.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone

from towline.engine.events import AttemptBegan, LogChunk, LogRewritten
from towline.engine.outcomes import expect_done
from towline.engine.session import Session
from towline.models.errors import NotFound, UsageError
from towline.models.job import JobRecord, JobState
from towline.remote.base import Operation
from towline.storage.logs import (
    MEMORY,
    AttemptSign,
    LogAnswer,
    LogChoice,
    LogFile,
    LogSlice,
    Question,
    log_file,
    parse_logs,
)
from towline.storage.scripts import script

DOUBT_LOOKS, DOUBT_SECONDS = 3, 6.0
"""A file that is shorter than what was read of it, or has something else before the new bytes, has been rewritten when
so many looks say so and so much time has passed: another login host may see an older state of it for a while (nfs(5),
acregmin is 3 s)."""

ALL = LogChoice()
_MISSING = 44
_MOMENT = 2
"""Looks."""
LogEvent = LogChunk | AttemptBegan | LogRewritten


@dataclass
class _Reading:
    """How far one file was read."""

    offset: int
    before: bytes
    end: int | None = None
    doubts: int = 0
    since: float = 0.0

    @property
    def over(self) -> bool:
        """Whether it was read as far as it is wanted."""
        return self.end is not None and self.offset >= self.end

    def fits(self, found: LogSlice) -> bool:
        """Whether the slice goes on where this ended."""
        known = min(len(self.before), len(found.before))
        same = not known or self.before[-known:] == found.before[-known:]
        return same and found.size >= self.offset

    def take(self, found: LogSlice) -> bytes:
        """The slice's new bytes."""
        self.offset = found.at + len(found.data)
        self.before = (self.before + found.data[-MEMORY:])[-MEMORY:]
        self.doubts = 0
        return found.data

    def rewritten(self) -> bool:
        """Take note of a look that does not fit; whether it is sure now, and then begin anew."""
        if not self.doubts:
            self.since = time.monotonic()
        self.doubts += 1
        if self.doubts < DOUBT_LOOKS or time.monotonic() - self.since < DOUBT_SECONDS:
            return False
        self.offset, self.before, self.doubts = 0, b"", 0
        return True

    def shortened(self, size: int) -> None:
        """Where it was wanted to an end, that is not behind the file's own."""
        if self.end is not None:
            self.end = min(self.end, size)


@dataclass
class LogReader:
    """The log of one job, or of an array.

    Args:
        session: the way to the cluster.
        record: the job.
        choice: which files.
        tail: begin with so many last lines of each file that is there already.
        first: the attempt to begin with; the newest that has begun when None.
        to_now: read each file as far as it is written when it is seen first, one after another.
        tasks: tasks of an array that are read; None for any other job.

    Attributes:
        attempt: number of the attempt that is read; those before it are over. 0 before anything was seen.
        more: whether the last answer could not hold all that there is.
        quiet: whether the last answer brought nothing, and leaves no doubt.
        over: tasks that were read to their end.
    """

    session: Session
    record: JobRecord
    choice: LogChoice = ALL
    tail: int | None = None
    first: int | None = None
    to_now: bool = False
    tasks: set[int] | None = None
    attempt: int = 0
    more: bool = False
    quiet: bool = False
    over: set[int] = field(default_factory=set[int])
    _files: dict[str, _Reading] = field(default_factory=dict[str, _Reading])
    _told: dict[int | None, int] = field(default_factory=dict[int | None, int])
    _unsplit: int = 0

    async def look(self) -> LogAnswer:
        """One look at the files, from where the last one ended; `take` has what it brought.

        Raises:
            NotFound: the job's directory is gone.
            UsageError: the job has no such log.
        """
        only = self.choice.attempt
        question = Question(
            self.record.directory,
            self.choice.patterns(self.record.roles, self._tasks()),
            self.record.task,
            only or self.attempt or (self.first if self.tasks is None else 1),
            only,
            self.tail,
            self.to_now,
        )
        arguments = question.arguments({name: None if it.over else it.offset for name, it in self._files.items()})
        outcome = await self.session.run(Operation("read logs", script("read-logs"), arguments, repeats=True))
        answer = parse_logs(expect_done(outcome, "reading the log", {_MISSING: gone(self.record)}))
        self._check(answer)
        return answer

    def take(self, answer: LogAnswer) -> Iterator[LogEvent]:
        """What is new in the answer; the offsets move on."""
        found = [(each, about) for each in answer.slices if (about := log_file(each.name))]
        self.quiet, self.more, self.tail = True, answer.cut, None
        self._miss({each.name for each, _ in found})
        if self.tasks is not None:
            yield from self._sorted(found)
            return
        self.attempt = self.attempt or answer.first
        yield from self._sorted([each for each in found if each[1].attempt <= self.attempt])
        while self.quiet and (later := self._later(answer)):
            self.attempt = later.number
            self._forget(lambda about: about.attempt < self.attempt)
            yield AttemptBegan(later.number)
            yield from self._sorted([each for each in found if each[1].attempt == later.number])

    @property
    def done(self) -> bool:
        """Whether every file was read as far as it was written when it was seen first."""
        return all(file.over for file in self._files.values())

    @property
    def seen(self) -> int:
        """How many files there were so far."""
        return len(self._files)

    def drop_drained(self, answer: LogAnswer, ended: set[int]) -> None:
        """Read no more of those tasks, which had ended before the look, that it brought nothing of."""
        brought = {about.task for each in answer.slices if (about := log_file(each.name))}
        if over := ended - brought - self.over:
            self.over |= over
            self._forget(lambda about: about.task in over)

    def _miss(self, names: set[str]) -> None:
        """Want no more of a file that has gone, or has become as short as what was read of it, once that is sure."""
        for name, file in self._files.items():
            if name not in names and file.end is not None and not file.over and file.rewritten():
                file.end = 0

    def _tasks(self) -> set[int] | None:
        return self.tasks if self.tasks is not None or self.record.task is None else {self.record.task}

    def _later(self, answer: LogAnswer) -> AttemptSign | None:
        """The next attempt that has begun: all that this one wrote is there by then."""
        later = (each for each in answer.attempts if each.begun and each.number > self.attempt)
        return None if self.choice.attempt else next(later, None)

    def _sorted(self, found: list[tuple[LogSlice, LogFile]]) -> Iterator[LogEvent]:
        """The slices' new bytes, except where a file is not what it was."""
        for each, about in found:
            reading = self._files.setdefault(
                each.name, _Reading(each.at, each.before, each.size if self.to_now else None)
            )
            if not reading.fits(each):
                self.quiet = False
                if reading.rewritten():
                    reading.shortened(each.size)
                    yield LogRewritten(each.name)
            elif each.data:
                self.quiet = False
                yield from self._mark(about)
                task = about.task if self.tasks is not None else None
                data = reading.take(each)
                yield LogChunk(about.stream, data, about.role, about.rank, about.node, task, about.attempt)

    def _mark(self, about: LogFile) -> Iterator[LogEvent]:
        """Tell where a task of an array goes on in another attempt."""
        if self.tasks is not None and about.attempt > self._told.get(about.task, 1):
            self._told[about.task] = about.attempt
            yield AttemptBegan(about.attempt, about.task)

    def _forget(self, over: Callable[[LogFile], bool]) -> None:
        kept = ((name, file) for name, file in self._files.items() if (about := log_file(name)) and not over(about))
        self._files = dict(kept)

    def _check(self, answer: LogAnswer) -> None:
        numbers = [each.number for each in answer.attempts]
        if self.choice.attempt and numbers and self.choice.attempt not in numbers:
            there = "one attempt" if len(numbers) == 1 else f"the attempts {numbers[0]} to {numbers[-1]}"
            raise UsageError(
                f"job {self.record.reference} has no attempt {self.choice.attempt}", why=f"It has {there}."
            )
        sign = answer.attempt(self.choice.attempt or self.attempt or answer.first)
        if not self.choice.split or sign.split or not sign.begun:
            return
        # Their directory is made a moment after the start.
        self._unsplit += 1
        if sign.ended or self.to_now or self._unsplit > _MOMENT:
            raise UsageError(
                f"the ranks of job {self.record.reference} have no log files of their own",
                why="They all write into one, which is shown without --rank and --node.",
                fix="Start the job with `--log-per rank` (or `node`) the next time.",
            )


async def read_clock(session: Session) -> datetime:
    """The time on the login host, with its zone."""
    outcome = await session.run(Operation("clock", "date '+%s %z'", repeats=True))
    seconds, zone = expect_done(outcome, "asking for the time").split()
    minutes = int(zone[1:3]) * 60 + int(zone[3:5])
    offset = timedelta(minutes=-minutes if zone.startswith(b"-") else minutes)
    return datetime.fromtimestamp(int(seconds), timezone(offset))


def gone(record: JobRecord) -> NotFound:
    """The error for a job whose directory is not there."""
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
