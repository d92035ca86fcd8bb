"""How following a job is shown: to a person as text, to a program as JSON lines."""

from __future__ import annotations

import sys
import time
from typing import Protocol

from towline.cli import wording
from towline.cli.documents import Document, exit_as_dict, job_as_dict, print_document, towline_exit
from towline.cli.loglines import LineFilter
from towline.cli.logstream import LogText, LogWriter
from towline.cli.output import RED, YELLOW, StatusLine, duration
from towline.engine.events import AttemptBegan, Event, Held, LogChoice, LogChunk, LogRewritten, NoAnswer
from towline.models.errors import INTERRUPTED
from towline.models.job import JobRecord, JobState

_WAITS = (JobState.PENDING, JobState.SUBMITTING)


class View(Protocol):
    """What `follow` tells about one job; the order of calls is the order of events."""

    def submitted(self, record: JobRecord) -> None:
        """The job was handed to Slurm."""
        ...

    def held(self, hold: Held) -> None:
        """Slurm does not take the job now; it is tried again."""
        ...

    def event(self, event: Event) -> None:
        """The state changed, or the log grew."""
        ...

    def tick(self) -> None:
        """A second has passed."""
        ...

    def ended(self, record: JobRecord) -> None:
        """The job has ended and the whole log was shown."""
        ...

    def finish(self) -> None:
        """Nothing more is shown of the log."""
        ...

    def no_log(self, record: JobRecord, choice: LogChoice | None = None) -> None:
        """There is nothing to show of the log, or of what was chosen of it."""
        ...

    def detached(self, record: JobRecord) -> None:
        """Nobody follows the job any more; it goes on."""
        ...

    def cancelled(self, record: JobRecord) -> None:
        """The user had the job cancelled."""
        ...


class TextView:
    """The log on stdout and stderr, everything else on stderr.

    Args:
        status: the line for news; several views may share one.
        log: where the log goes.
    """

    def __init__(self, status: StatusLine | None = None, log: LogWriter | None = None) -> None:
        self._status = status or StatusLine()
        self._log = log or LogWriter()
        self._waiting: JobRecord | None = None
        self._since = time.monotonic()
        self._said = ""
        self._held = ""

    def submitted(self, record: JobRecord) -> None:  # noqa: D102 - see View
        self._status.say(wording.submitted(record))
        if record.tasks is not None:
            first = min(record.tasks.numbers)
            self._status.say(
                f"its tasks' logs: towline logs -f {record.id}, or of one: towline logs {record.id}_{first}"
            )

    def held(self, hold: Held) -> None:  # noqa: D102
        if sys.stderr.isatty() or hold.reason != self._held:  # the pauses grow, which is no news for a file
            self._status.update(wording.held(hold))
        self._held = hold.reason

    def event(self, event: Event) -> None:  # noqa: D102
        if isinstance(event, LogChunk):
            self._status.clear()
            self._log.write(event)
        elif isinstance(event, NoAnswer):
            self._log.pause()
            self._status.say(wording.no_answer(event.reason), YELLOW)
        elif isinstance(event, AttemptBegan) and event.task is not None:
            self._log.pause()  # the other tasks' lines go on
            self._status.say(wording.mark(event), YELLOW)
        elif isinstance(event, AttemptBegan | LogRewritten):
            self._log.finish()
            self._status.say(wording.mark(event), YELLOW)
        elif not event.record.state.ended:
            self._progress(event.record)

    def tick(self) -> None:  # noqa: D102
        if self._waiting and sys.stderr.isatty():
            self._show_waiting(self._waiting)

    def ended(self, record: JobRecord) -> None:  # noqa: D102
        self.finish()
        headline, *why = wording.ending(record)
        self._status.say(headline, wording.colour_of(record))
        for line in why:
            self._status.say(line)

    def finish(self) -> None:  # noqa: D102
        self._waiting = None
        self._status.clear()
        self._log.finish()

    def no_log(self, record: JobRecord, choice: LogChoice | None = None) -> None:  # noqa: D102
        self._status.say(wording.no_log(record, choice))

    def detached(self, record: JobRecord) -> None:  # noqa: D102
        self.finish()

    def cancelled(self, record: JobRecord) -> None:  # noqa: D102
        self._status.say(wording.verdict(record), wording.colour_of(record))

    def _progress(self, record: JobRecord) -> None:
        if record.state in _WAITS:
            self._waiting = record
            self._show_waiting(record)
            self._warn(record)
            return
        self._waiting = None
        text = wording.progress(record)
        if record.tasks is not None:
            self._status.update(text)  # counts change all the time
        elif text != self._said:
            self._log.pause()
            self._status.say(text)
            self._said = text

    def _warn(self, record: JobRecord) -> None:
        """Say aloud, once, that a job will never start by itself."""
        text = wording.blocked(record)
        if text and text != self._said:
            self._status.say(text, RED)
            self._said = text

    def _show_waiting(self, record: JobRecord) -> None:
        clock = duration(time.monotonic() - self._since)
        self._status.update(wording.progress(record), suffix=f" ({clock})")


class JsonView:
    """One JSON object per line on stdout.

    Args:
        job_id: the job that log lines belong to.
        only: print those lines only.
    """

    def __init__(self, job_id: str, only: LineFilter | None = None) -> None:
        self._text = LogText(only)
        self._id = job_id

    def submitted(self, record: JobRecord) -> None:  # noqa: D102 - see View
        self._print("submitted", record)

    def held(self, hold: Held) -> None:  # noqa: D102
        self._print("held", hold.record, reason=hold.reason, seconds=round(hold.seconds, 1))

    def event(self, event: Event) -> None:  # noqa: D102
        if isinstance(event, LogChunk):
            self._print_log(event, self._text.feed(event))
        elif isinstance(event, NoAnswer):
            print_document({"event": "no-answer", "job_id": self._id, "reason": event.reason})
        elif isinstance(event, AttemptBegan):
            if event.task is None:
                self.finish()
            task = {} if event.task is None else {"task": event.task}
            print_document({"event": "attempt", "job_id": self._id, "number": event.number, **task})
        elif isinstance(event, LogRewritten):
            self.finish()
            print_document({"event": "rewritten", "job_id": self._id, "file": event.name})
        elif not event.record.state.ended:
            self._print("state", event.record)

    def tick(self) -> None:  # noqa: D102
        pass

    def finish(self) -> None:  # noqa: D102
        for whose, text in self._text.rest():
            self._print_log(whose, text)

    def ended(self, record: JobRecord) -> None:  # noqa: D102
        self.finish()
        self._print("ended", record, exit=exit_as_dict(record))

    def detached(self, record: JobRecord) -> None:  # noqa: D102
        self.finish()
        self._print("detached", record, exit=towline_exit(INTERRUPTED))

    def cancelled(self, record: JobRecord) -> None:  # noqa: D102
        self._print("cancelled", record, exit=towline_exit(INTERRUPTED))

    def _print(self, kind: str, record: JobRecord, **more: Document | str | float) -> None:
        print_document({"event": kind, "job": job_as_dict(record), **more})

    def _print_log(self, whose: LogChunk, text: str) -> None:
        if text:
            about = {"role": whose.role, "rank": whose.rank, "node": whose.node, "task": whose.task}
            given = {name: value for name, value in about.items() if value not in ("", None)}
            print_document({"event": "log", "job_id": self._id, "stream": whose.stream, **given, "text": text})

    def no_log(self, record: JobRecord, choice: LogChoice | None = None) -> None:  # noqa: D102
        print_document({"event": "no-log", "job_id": self._id, "reason": wording.no_log(record, choice)})
