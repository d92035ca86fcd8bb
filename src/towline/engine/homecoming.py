"""Results: listed, and brought home as one stream."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from towline.engine.events import Progress, PullReport, ResultFile
from towline.engine.outcomes import expect_done, last_words
from towline.engine.session import Session
from towline.models.errors import NotFound, TransferFailed
from towline.models.job import JobRecord
from towline.remote.base import Ending, Operation, Outcome
from towline.remote.unpack import Unpacker
from towline.storage.results import admit_member, parse_results
from towline.storage.scripts import script

_MISSING, _UNREADABLE = 44, 45


async def list_results(session: Session, record: JobRecord) -> tuple[ResultFile, ...]:
    """The files below the job's results directory, sorted by path."""
    operation = Operation("list results", script("list-results"), (record.directory,))
    outcome = await session.run(operation)
    return parse_results(expect_done(outcome, "listing the results", {_MISSING: _gone(record)}))


async def pull(
    session: Session, record: JobRecord, dest: Path, *, progress: Callable[[Progress], None] | None
) -> PullReport:
    """Bring the results home below `dest`."""
    intake = _Intake(dest, progress)
    operation = Operation("send results", script("send-results"), (record.directory,), timeout=None)
    try:
        with intake.unpacker:
            outcome = await session.run(operation, sink=intake.take)
    except OSError as error:
        raise TransferFailed(
            f"the results of job {record.id} could not be written to {dest}",
            why=str(error),
            fix="Free the place or choose another directory, then pull again.",
        ) from error
    except ValueError as error:
        raise _broken(record, str(error)) from error
    _check(outcome, record, intake.unpacker.unpacked.refused)
    if intake.files_total is None:
        raise _broken(record, "the stream ended before it began")
    unpacked = intake.unpacker.unpacked
    return PullReport(unpacked.files, unpacked.bytes, dest, tuple(unpacked.refused))


class _Intake:
    """Takes the stream of `send-results`: a line with the totals, then a tar stream."""

    def __init__(self, dest: Path, progress: Callable[[Progress], None] | None) -> None:
        self.unpacker = Unpacker(dest, admit_member, self._written)
        self.files_total: int | None = None
        self._bytes_total = 0
        self._head = b""
        self._files = self._bytes = 0
        self._progress = progress

    def take(self, data: bytes) -> None:
        if self.files_total is None:
            self._head += data
            line, mark, data = self._head.partition(b"\n")
            if not mark:
                return
            files, self._bytes_total = (int(word) for word in line.split())
            self.files_total = files
        if data:
            self.unpacker.feed(data)

    def _written(self, count: int, whole: bool) -> None:
        self._bytes += count
        self._files += whole
        if self._progress:
            self._progress(Progress(self._files, self.files_total or 0, self._bytes, self._bytes_total))


def _check(outcome: Outcome, record: JobRecord, refused: Sequence[str]) -> None:
    if outcome.ending is Ending.DONE and outcome.exit_code == _UNREADABLE:
        others = [f"{name} was left there, too: it leads out of the results, or is no file" for name in refused]
        raise TransferFailed(
            f"some results of job {record.id} could not be read on the cluster; the others were brought home",
            why="\n".join([last_words(outcome.stderr), *others]),
            fix="Give yourself the right to read them there, then pull again.",
        )
    if outcome.ending is Ending.UNKNOWN:
        raise _broken(record, outcome.detail)
    expect_done(outcome, "bringing the results home", {_MISSING: _gone(record)})


def _broken(record: JobRecord, why: str) -> TransferFailed:
    return TransferFailed(
        f"the results of job {record.id} did not arrive whole",
        why=why,
        fix="Pull again; the files that arrived are whole and are replaced.",
    )


def _gone(record: JobRecord) -> NotFound:
    return NotFound(
        f"job {record.id} has no results directory on the cluster",
        why=f"{record.directory}/results is not there or may not be read.",
        fix="See with `towline status` whether the job was ever submitted.",
    )
