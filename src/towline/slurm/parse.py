"""Reading what `sbatch`, `squeue` and `sacct` print.

Rows hold fields of fixed vocabulary, so that `|` separates them safely; the pending reason, which may hold any
text, and the working directory come last. Unknown is None, never 0.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from towline.models.job import JobState
from towline.slurm.states import job_state, state_word

_PARSABLE = re.compile(r"(\d+)(?:;(\S+))?")
_SENTENCE = re.compile(r"Submitted batch job (\d+)(?: on cluster (\S+))?")
_ROW_ID = re.compile(r"\d+(?:[_+]\S+)?")
_EXIT = re.compile(r"(\d+):(\d+)")


class SlurmId(NamedTuple):
    """Slurm's id of a job.

    Attributes:
        id: the number, as text.
        cluster: the cluster's name where sbatch told it (`-M`, federations), else empty.
    """

    id: str
    cluster: str = ""

    def __str__(self) -> str:
        return f"{self.id};{self.cluster}" if self.cluster else self.id


@dataclass(frozen=True)
class ExitCode:
    """An exit code as Slurm writes it, `code:signal`.

    Attributes:
        code: exit code; accounting up to 25.05 stores 128 and above less 128.
        signal: the signal that ended the job, 0 for none.
    """

    code: int
    signal: int = 0

    @property
    def status(self) -> int:
        """The exit status as a shell shows it: 128 + signal for a death by signal."""
        return self.code or (128 + self.signal if 0 < self.signal < 65 else self.signal)


@dataclass(frozen=True)
class QueueRow:
    """One job in `squeue`.

    Attributes:
        id: the id as squeue prints it; arrays look like `12_3` or `12_[4-9]`.
        word: Slurm's state word.
        state: Towline's word for it.
        submitted: seconds since 1970; a requeue renews it.
        started: start, or the expected start of a pending job; None when not known.
        ended: end or expected end; None when not known.
        node_count: number of nodes asked for or had.
        nodes: node names, compressed; empty before the start.
        reason: pending reason, or reason of the end; empty for none.
        directory: its working directory; empty when it was not asked for.
    """

    id: str
    word: str
    state: JobState
    submitted: int | None = None
    started: int | None = None
    ended: int | None = None
    node_count: int | None = None
    nodes: str = ""
    reason: str = ""
    directory: str = ""


@dataclass(frozen=True)
class AccountingRow:
    """One run of a job in `sacct -X -D`; a requeued job has several.

    Attributes:
        id: the id as sacct prints it; arrays look like `12_3`.
        word: Slurm's state word.
        state: Towline's word for it.
        exit: exit code of the allocation; None when not known.
        submitted, started, ended: seconds since 1970; None when not known.
        nodes: node names, compressed; empty when it never started.
        directory: its working directory; empty when it was not asked for.
    """

    id: str
    word: str
    state: JobState
    exit: ExitCode | None = None
    submitted: int | None = None
    started: int | None = None
    ended: int | None = None
    nodes: str = ""
    directory: str = ""


@dataclass(frozen=True)
class JobHistory:
    """All that accounting has of one Slurm id.

    Attributes:
        newest: the row that counts.
        earlier: runs before a requeue, oldest first. The part of a run before the job was resized is none.
    """

    newest: AccountingRow
    earlier: tuple[AccountingRow, ...] = ()


def parse_sbatch(text: str) -> SlurmId:
    """The id in sbatch's answer, with or without `--parsable`, below whatever a site prints around it.

    Raises:
        ValueError: no line is an id, or several lines are different ones.
    """
    found = {match for line in text.splitlines() if (match := _answer(line.strip()))}
    if len(found) != 1:
        raise ValueError(f"{'several job ids' if found else 'no job id'} in sbatch's answer: {text.strip()[:200]!r}")
    return found.pop()


def _answer(line: str) -> SlurmId | None:
    found = _PARSABLE.fullmatch(line) or _SENTENCE.fullmatch(line)
    return SlurmId(found[1], found[2] or "") if found else None


def parse_squeue(text: str) -> tuple[QueueRow, ...]:
    """Rows printed with `towline.slurm.commands.SQUEUE_FORMAT`; lines that are none are passed over."""
    return tuple(row for line in text.splitlines() if (row := _queue_row(line)))


def parse_sacct(text: str) -> dict[str, JobHistory]:
    """Rows printed with `towline.slurm.commands.SACCT_FIELDS`, by id."""
    runs: dict[str, list[AccountingRow]] = {}
    for line in text.splitlines():
        if row := _accounting_row(line):
            runs.setdefault(row.id, []).append(row)
    return {job_id: _history(rows) for job_id, rows in runs.items()}


def parse_exit_code(text: str) -> ExitCode | None:
    """`137:0`, `0:15`; None for anything else."""
    found = _EXIT.fullmatch(text.strip())
    return ExitCode(int(found[1]), int(found[2])) if found else None


def parse_time(text: str) -> int | None:
    """Seconds since 1970 as `SLURM_TIME_FORMAT=%s` prints them; None for `N/A`, `None`, `Unknown` and 0."""
    text = text.strip()
    return int(text) or None if text.isdecimal() else None


@lru_cache(maxsize=4096)  # the rows of jobs that wait are the same in poll after poll
def _queue_row(line: str) -> QueueRow | None:
    parts = line.split("|", 7)
    if len(parts) != 8 or not _ROW_ID.fullmatch(parts[0].strip()):
        return None
    job_id, word, submitted, started, ended, count, nodes, rest = (part.strip() for part in parts)
    reason, mark, path = rest.partition("|/")
    return QueueRow(
        id=job_id,
        word=state_word(word),
        state=job_state(word),
        submitted=parse_time(submitted),
        started=parse_time(started),
        ended=parse_time(ended),
        node_count=int(count) if count.isdecimal() else None,
        nodes=_named(nodes),
        reason=_named(reason),
        directory=f"/{path}" if mark else "",
    )


def _accounting_row(line: str) -> AccountingRow | None:
    parts = [part.strip() for part in line.split("|", 7)]
    if len(parts) < 7 or not _ROW_ID.fullmatch(parts[0]):
        return None
    job_id, word, code, submitted, started, ended, nodes, directory = (*parts, "")[:8]
    return AccountingRow(
        id=job_id,
        word=state_word(word),
        state=job_state(word),
        exit=parse_exit_code(code),
        submitted=parse_time(submitted),
        started=parse_time(started),
        ended=parse_time(ended),
        nodes=_named(nodes),
        directory=directory,
    )


def _named(text: str) -> str:
    return "" if text in ("None", "None assigned", "(null)", "N/A", "n/a", "Unknown") else text


def _history(rows: list[AccountingRow]) -> JobHistory:
    order = sorted(range(len(rows)), key=lambda index: (rows[index].submitted or 0, index))
    *earlier, newest = (rows[index] for index in order)
    return JobHistory(newest, tuple(row for row in earlier if row.word != "RESIZING"))
