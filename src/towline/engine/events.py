"""What following a job, listing its results and pulling them tell their caller, piece by piece."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from towline.models.job import JobRecord
from towline.storage.logs import LogChoice as LogChoice
from towline.storage.results import ResultFile as ResultFile


@dataclass(frozen=True)
class StateChanged:
    """The job is in another state than before, waits for another reason, or has a new attempt.

    Attributes:
        record: the job as it is now.
    """

    record: JobRecord


@dataclass(frozen=True)
class NoAnswer:
    """The cluster does not answer, or has lost the job's files; following goes on. Told once for each such time.

    Attributes:
        reason: why, as far as is known.
    """

    reason: str


@dataclass(frozen=True)
class Held:
    """A submission waits: Slurm takes no jobs now, or it is not known yet whether it has this one.

    Attributes:
        record: the job.
        reason: why, on one line.
        seconds: until the next try.
    """

    record: JobRecord
    reason: str
    seconds: float


@dataclass(frozen=True)
class LogChunk:
    """The next bytes of the job's log, unchanged and in order for each stream.

    Attributes:
        stream: `out` or `err`.
        data: never empty; may end within a line or within a character.
        role: the role whose log it is, in a job with roles; empty for the job's own.
        rank: the rank whose log it is; None in a file of several.
        node: the node whose log it is, or that the rank is on; empty in a file of several.
        task: the task whose log it is, when a whole array is followed.
        attempt: number of the attempt.
    """

    stream: Literal["out", "err"]
    data: bytes
    role: str = ""
    rank: int | None = None
    node: str = ""
    task: int | None = None
    attempt: int = 1

    @property
    def source(self) -> str:
        """Whose words these are, in short: `3` for a rank or a task, `policy 3`, `node2`; empty for the job."""
        number = str(self.rank) if self.rank is not None else self.node
        task = "" if self.task is None else str(self.task)
        return " ".join(filter(None, (self.role, task if not number else f"{task}/{number}" if task else number)))


@dataclass(frozen=True)
class AttemptBegan:
    """The log goes on with another attempt's; all that is to come of the one before was told.

    Attributes:
        number: of the attempt that has begun.
        task: the task of the array that it is about; None for any other job.
    """

    number: int
    task: int | None = None


@dataclass(frozen=True)
class LogRewritten:
    """A log file is not the one that was read so far: the job has cut it or written it anew. It is told from its start.

    Attributes:
        name: the file below `attempts/` of the job directory.
    """

    name: str


Event = StateChanged | LogChunk | AttemptBegan | LogRewritten | NoAnswer


@dataclass(frozen=True)
class Progress:
    """How far a transfer is.

    Attributes:
        files_done, files_total: numbers of files.
        bytes_done, bytes_total: numbers of bytes.
    """

    files_done: int
    files_total: int
    bytes_done: int
    bytes_total: int


NOTHING_LEFT = "the job left nothing in $TOWLINE_RESULTS_DIR"
"""In place of the way of a pull of results, when there are none."""


@dataclass(frozen=True)
class PullReport:
    """What a pull brought home.

    Attributes:
        files: number of files.
        bytes: their size in all.
        destination: the local directory that holds them.
        refused: names in the tree that were not brought home, for they would have left the destination
            or are no files (devices, pipes, links that lead out).
        received: bytes that came over the network in this call; less than `bytes` when files were here already.
        kept: number of files that were here already.
        grown: names of files that became longer while they were read; they are here as they were at the beginning.
        way: which way the files came (`rsync` or `tar`), and why; `NOTHING_LEFT` when there are none.
        unfinished: names of files that the job was still writing; they were not brought.
    """

    files: int
    bytes: int
    destination: Path
    refused: tuple[str, ...] = ()
    received: int = 0
    kept: int = 0
    grown: tuple[str, ...] = ()
    way: str = ""
    unfinished: tuple[str, ...] = ()
