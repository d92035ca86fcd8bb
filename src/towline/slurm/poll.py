"""What one poll saw (`scripts/poll.sh`): the queue, accounting, and the attempts' own files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from towline.slurm.parse import JobHistory, QueueRow, SlurmId


@dataclass(frozen=True)
class Query:
    """One query of the poll.

    Attributes:
        command: `squeue` or `sacct`.
        cluster: the cluster that was asked with `-M`, else empty.
        ids: what it was asked for.
        exit_code: the command's exit code.
        error: what it printed on stderr.
    """

    command: str
    cluster: str
    ids: tuple[str, ...]
    exit_code: int
    error: str = ""

    @property
    def answered(self) -> bool:
        """Whether silence about an id means that it is not there; an unknown id makes squeue exit with 1."""
        raise NotImplementedError


@dataclass(frozen=True)
class AttemptFiles:
    """What the shared file system has of one attempt; all of it was written by jobs and is not trusted.

    Attributes:
        present: whether the job directory exists.
        cancelled: whether the job was cancelled.
        slurm: sbatch's answer, from `submit`.
        claim: Slurm id of the job that owns the attempt.
        start: what the supervisor wrote at its start.
        end: what the supervisor wrote at its end; empty while it goes on.
        first_exit: the first failing rank's record, `<code> self|signal`, else empty.
        newest: the highest attempt number there is.
    """

    present: bool = False
    cancelled: bool = False
    slurm: SlurmId | None = None
    claim: str = ""
    start: Mapping[str, str] | None = None
    end: Mapping[str, str] | None = None
    first_exit: str = ""
    newest: int = 0


@dataclass(frozen=True)
class PollAnswer:
    """All that one poll saw.

    Attributes:
        complete: whether the script ran to its end; what is missing from an incomplete answer means nothing.
        queries: every query with its exit code.
        queue: rows of squeue by (cluster, id).
        accounting: rows of sacct by (cluster, id).
        attempts: files by (job id, attempt).
    """

    complete: bool
    queries: tuple[Query, ...]
    queue: Mapping[tuple[str, str], QueueRow]
    accounting: Mapping[tuple[str, str], JobHistory]
    attempts: Mapping[tuple[str, int], AttemptFiles]

    def row(self, slurm: SlurmId) -> QueueRow | None:
        """The job's row in the queue; it may have ended a little while ago."""
        return self.queue.get((slurm.cluster, slurm.id))

    def history(self, slurm: SlurmId) -> JobHistory | None:
        """The job's runs in accounting; only asked for when the queue did not have it, or it had ended there."""
        return self.accounting.get((slurm.cluster, slurm.id))

    def asked(self, command: str, slurm: SlurmId) -> Query | None:
        """The query that asked for this job, None when there was none."""
        raise NotImplementedError


def parse_poll(stdout: str) -> PollAnswer:
    """Read the answer of the poll script; a line that is not part of it is passed over."""
    raise NotImplementedError
