"""What one poll saw (`scripts/poll.sh`): the queue, accounting, and the attempts' own files."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from towline.models.array import parse_tasks
from towline.models.job import Component, JobState
from towline.slurm.commands import chunks
from towline.slurm.frames import Frame, is_complete, parse_frames, plain_id
from towline.slurm.parse import AccountingRow, JobHistory, QueueRow, SlurmId, parse_sacct, parse_sbatch, parse_squeue

_JOB_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
_SLURM_ID = re.compile(r"\d+(?:[_+]\d+)?")
_CLUSTER = re.compile(r"(?:[A-Za-z0-9_][A-Za-z0-9_.-]*)?")
_KEY = re.compile(r"[a-z_]+")
_BUSY = re.compile(r"temporarily unable|rate limit|RPC limit|busy|timed out on send/recv|try again", re.IGNORECASE)
"""Slurm's words for a controller that has too much to do; limits on requests came with 23.02 (slurm.conf(5))."""


class PollTarget(NamedTuple):
    """One attempt to look at.

    Attributes:
        job_id: Towline's id; None for a job that is not Towline's, of which only Slurm knows.
        attempt: number of the attempt.
        slurm: Slurm's id, None while it is not known.
        task: number of an array's task, when this is about one; then `slurm` is like `12_3`.
        array: whether `slurm` is an array's, whose tasks are wanted in sum.
        lazy: whether its files are of no interest while it still waits in the queue.
    """

    job_id: str | None
    attempt: int
    slurm: SlurmId | None = None
    task: int | None = None
    array: bool = False
    lazy: bool = False


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
        """Whether silence about an id means that it is not there.

        squeue exits with 1 for a single unknown id; where a site keeps no accounting, sacct can add nothing.
        """
        unknown = self.command == "squeue" and "invalid job id" in self.error.lower()
        return self.exit_code == 0 or unknown or self.accounting_off

    @property
    def accounting_off(self) -> bool:
        """Whether this site keeps no accounting, so that sacct will never answer."""
        return self.command == "sacct" and "accounting storage is disabled" in self.error.lower()


@dataclass(frozen=True)
class Awaited:
    """What a job waits for that another job makes on the cluster, for example its image.

    Attributes:
        what: as the job names it.
        slurm_id: of the job that makes it; empty while it has none.
        stage: what that job is at, `import`, `check` or `keep`; empty before its start.
        doing: its tool's newest words.
        bytes: what is made so far.
        seconds: since it began.
        rate: bytes a second.
    """

    what: str
    slurm_id: str = ""
    stage: str = ""
    doing: str = ""
    bytes: int = 0
    seconds: int = 0
    rate: int = 0


@dataclass(frozen=True)
class AttemptFiles:
    """What the shared file system has of one attempt; all of it was written by jobs and is not trusted.

    Attributes:
        present: whether the job directory exists.
        cancelled: whether the job, or this task of it, was cancelled.
        newest: the highest attempt number from the one asked for on, 0 when that one is not there.
        secrets: whether the values of the job's secrets are still there.
        contested: whether it was submitted twice, so that there may be a second job for it.
        slurm: sbatch's answer, from `submit`.
        claim: Slurm id of the job that owns the attempt.
        start: what the supervisor wrote at its start; None before.
        signal: what it wrote when it was told to end; None when it was not.
        decision: what it makes of the end, see `launch.records.Decision`; None before.
        end: what the supervisor wrote at its end; None before.
        first_exit: rank that failed by itself first, as the prelude wrote it, else empty.
        awaits: what is made for the job, which has not begun.
        report: the end of `status.json` in the job's results directory; empty when there is none.
        reported: whether this attempt has written there, not an earlier one.
    """

    present: bool = False
    cancelled: bool = False
    newest: int = 0
    secrets: bool = False
    contested: bool = False
    slurm: SlurmId | None = None
    claim: str = ""
    start: Mapping[str, str] | None = None
    signal: Mapping[str, str] | None = None
    decision: Mapping[str, str] | None = None
    end: Mapping[str, str] | None = None
    first_exit: str = ""
    awaits: tuple[Awaited, ...] = ()
    report: str = ""
    reported: bool = False


@dataclass(frozen=True)
class PollAnswer:
    """All that one poll saw.

    Attributes:
        complete: whether the script ran to its end; what is missing from an incomplete answer means nothing.
        queries: every query with its exit code.
        queue: rows of squeue by (cluster, id).
        accounting: rows of sacct by (cluster, id).
        attempts: files by (job id, attempt, number of an array's task or None).
        now: the time on the cluster's clock, in seconds since 1970; None when it did not say.
    """

    complete: bool
    queries: tuple[Query, ...]
    queue: Mapping[tuple[str, str], QueueRow]
    accounting: Mapping[tuple[str, str], JobHistory]
    attempts: Mapping[tuple[str, int, int | None], AttemptFiles]
    now: int | None = None

    @property
    def busy(self) -> bool:
        """Whether Slurm said that it has too much to do."""
        return any(query.exit_code and _BUSY.search(query.error) for query in self.queries)

    @property
    def unanswered(self) -> bool:
        """Whether the queue could not be asked."""
        return any(query.command == "squeue" and not query.answered for query in self.queries)

    def row(self, slurm: SlurmId) -> QueueRow | None:
        """The job's row in the queue; it may have ended a little while ago.

        Of a heterogeneous job it is the first component's, where the batch script runs.
        """
        return self.queue.get((slurm.cluster, slurm.id)) or self.queue.get((slurm.cluster, f"{slurm.id}+0"))

    def history(self, slurm: SlurmId) -> JobHistory | None:
        """The job's runs in accounting; only asked for when the queue did not have it, or it had ended there."""
        return self.accounting.get((slurm.cluster, slurm.id)) or self.accounting.get((slurm.cluster, f"{slurm.id}+0"))

    def components(self, slurm: SlurmId) -> tuple[Component, ...]:
        """The components of a heterogeneous job, in order; none of any other job."""
        found = self._components.get((slurm.cluster, slurm.id), {})
        return tuple(_component(row) for _, row in sorted(found.items()))

    @cached_property
    def _components(self) -> Mapping[tuple[str, str], Mapping[int, QueueRow | AccountingRow]]:
        """Of each heterogeneous job what its components say by their numbers, the queue's word first."""
        told = ((cluster, row_id, each.newest) for (cluster, row_id), each in self.accounting.items())
        queue = ((cluster, row_id, row) for (cluster, row_id), row in self.queue.items())
        found: dict[tuple[str, str], dict[int, QueueRow | AccountingRow]] = {}
        for cluster, row_id, row in (*told, *queue):
            base, plus, offset = row_id.partition("+")
            if plus and offset.isdecimal():
                found.setdefault((cluster, base), {})[int(offset)] = row
        return found

    def task_rows(self, slurm: SlurmId) -> tuple[tuple[frozenset[int], QueueRow], ...]:
        """The queue's rows about an array, with the numbers of the tasks that each one is about."""
        rows = (row for (cluster, _), row in self.queue.items() if cluster == slurm.cluster)
        return tuple((tasks, row) for row in rows if (tasks := tasks_of(row.id, slurm.id)))

    def task_histories(self, slurm: SlurmId) -> tuple[tuple[frozenset[int], JobHistory], ...]:
        """The same from accounting."""
        found = (each for (cluster, _), each in self.accounting.items() if cluster == slurm.cluster)
        return tuple((tasks, each) for each in found if (tasks := tasks_of(each.newest.id, slurm.id)))

    def asked(self, command: str, slurm: SlurmId) -> Query | None:
        """The query of `squeue` or `sacct` that asked for this job, None when there was none."""
        return self._asked.get((command, slurm.cluster, slurm.id))

    @cached_property
    def _asked(self) -> Mapping[tuple[str, str, str], Query]:
        """The first query of each command for each id."""
        return {(query.command, query.cluster, each): query for query in reversed(self.queries) for each in query.ids}


def _component(row: QueueRow | AccountingRow) -> Component:
    reason = row.reason if isinstance(row, QueueRow) else ""
    return Component(row.id, row.word, reason, "" if row.state is JobState.PENDING else row.nodes)


def tasks_of(row_id: str, array: str) -> frozenset[int]:
    """The tasks that a row is about: `12_3` or `12_[4-9,12%8]`; none when it is not about that array."""
    base, mark, tasks = row_id.partition("_")
    if base != array or not mark:
        return frozenset()
    try:
        return parse_tasks(tasks.strip("[]"))
    except ValueError:
        return frozenset()


def build_poll_input(
    targets: Sequence[PollTarget], accounts: Iterable[SlurmId] = (), past: Iterable[SlurmId] = ()
) -> tuple[str, str, str, str]:
    """The poll script's lists: queries with as many ids as fit a command line, attempts to look at, arrays, past.

    Raises:
        ValueError: an id has a form that no id has.
    """
    arrays = {target.slurm for target in targets if target.slurm and target.array}
    foreign = {target.slurm for target in targets if target.slurm and target.job_id is None}
    queries = [
        f"{cluster or '-'} {','.join(ids)} {_among(ids, cluster, arrays) or '-'} "
        f"{'any' if _among(ids, cluster, foreign) else 'own'}"
        for cluster, ids in _by_cluster([target.slurm for target in targets if target.slurm])
    ]
    attempts = [
        f"{_checked(_JOB_ID, target.job_id)} {target.attempt} {'-' if target.task is None else target.task}"
        f"{_unless_waiting(target)}"
        for target in targets
        if target.job_id is not None
    ]
    wanted, over = (
        [f"{cluster or '-'} {','.join(ids)}" for cluster, ids in _by_cluster(tuple(known))]
        for known in (accounts, past)
    )
    return "\n".join(queries), "\n".join(attempts), "\n".join(wanted), "\n".join(over)


def _among(ids: Sequence[str], cluster: str, some: set[SlurmId]) -> str:
    """Those of the ids that are some of these, as a list."""
    wanted = {slurm.id for slurm in some if slurm.cluster == cluster}
    return ",".join(each for each in ids if each in wanted)


def _unless_waiting(target: PollTarget) -> str:
    return f" {target.slurm.cluster or '-'}/{target.slurm.id}" if target.lazy and target.slurm else ""


def _by_cluster(known: Sequence[SlurmId]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """The ids in lists that fit one query each, with the cluster that they belong to."""
    for cluster in dict.fromkeys(_checked(_CLUSTER, slurm.cluster) for slurm in known):
        for ids in chunks(_checked(_SLURM_ID, slurm.id) for slurm in known if slurm.cluster == cluster):
            yield cluster, ids


def parse_poll(stdout: str) -> PollAnswer:
    """Read the answer of the poll script; a line that is not part of it is passed over."""
    frames = parse_frames(stdout)
    queries = tuple(_query(frame) for frame in frames if _is_query(frame))
    answers = [(_query(frame), frame.out) for frame in frames if _is_query(frame)]
    return PollAnswer(
        complete=is_complete(frames),
        queries=queries,
        queue={
            (query.cluster, row.id): row
            for query, out in answers
            if query.command == "squeue"
            for row in parse_squeue(out)
        },
        accounting={
            (query.cluster, job_id): history
            for query, out in answers
            if query.command == "sacct"
            for job_id, history in parse_sacct(out).items()
        },
        attempts=_attempts(frames),
        now=next((int(frame.head[1]) for frame in frames if _is_now(frame)), None),
    )


def _checked(pattern: re.Pattern[str], text: str) -> str:
    if not pattern.fullmatch(text):
        raise ValueError(f"{text!r} is not an id that can be asked for")
    return text


def _is_query(frame: Frame) -> bool:
    return frame.kind == "query" and len(frame.head) == 5 and frame.head[1].isdecimal()


def _is_now(frame: Frame) -> bool:
    return frame.kind == "now" and len(frame.head) == 2 and frame.head[1].isdecimal()


def _query(frame: Frame) -> Query:
    _, code, command, cluster, ids = frame.head
    return Query(command, plain_id(cluster), tuple(ids.split(",")), int(code), frame.err)


def _attempts(frames: Sequence[Frame]) -> dict[tuple[str, int, int | None], AttemptFiles]:
    files: dict[tuple[str, ...], dict[str, str]] = {}
    for frame in frames:
        if frame.kind == "file" and len(frame.head) == 5:
            _, *which, name = frame.head
            files.setdefault(tuple(which), {})[name] = frame.out
        elif frame.kind == "report" and len(frame.head) == 4:
            _, job, attempt, fresh = frame.head
            files.setdefault((job, attempt, "-"), {}).update(report=frame.out, reported=fresh)
    awaits: dict[str, list[Awaited]] = {}
    for frame in frames:
        if frame.kind == "await" and len(frame.head) == 2:
            awaits.setdefault(frame.head[1], []).append(_awaited(frame.out))
    return {
        (frame.head[1], int(frame.head[2]), int(task) if (task := frame.head[3]).isdecimal() else None): _files(
            frame, files.get(frame.head[1:4], {}), awaits.get(frame.head[1], ())
        )
        for frame in frames
        if frame.kind == "job" and len(frame.head) == 9 and frame.head[2].isdecimal() and frame.head[6].isdecimal()
    }


def _awaited(text: str) -> Awaited:
    values = {key: value for key, _, value in (line.partition(" ") for line in text.splitlines())}
    made, seconds, rate = (_count(word) for word in [*values.get("progress", "").split(" "), "", "", ""][:3])
    slurm = values.get("slurm", "").replace("-", "")
    return Awaited(values.get("what", ""), slurm, values.get("stage", ""), values.get("doing", ""), made, seconds, rate)


def _count(word: str) -> int:
    return int(word) if word.isdecimal() else 0


def _files(frame: Frame, content: Mapping[str, str], awaits: Sequence[Awaited]) -> AttemptFiles:
    *_, present, cancelled, newest, secrets, contested = frame.head
    return AttemptFiles(
        present=present == "yes",
        cancelled=cancelled == "yes",
        newest=int(newest),
        secrets=secrets == "yes",
        contested=contested == "yes",
        slurm=_slurm_id(content.get("submit", "")),
        claim=content.get("claim", "").strip(),
        start=_pairs(content.get("start")),
        signal=_pairs(content.get("signal")),
        decision=_pairs(content.get("decision")),
        end=_pairs(content.get("end")),
        first_exit=content.get("exit/first", "").strip(),
        awaits=tuple(awaits),
        report=content.get("report", ""),
        reported=content.get("reported") == "yes",
    )


def _slurm_id(text: str) -> SlurmId | None:
    try:
        return parse_sbatch(text)
    except ValueError:
        return None


def _pairs(text: str | None) -> Mapping[str, str] | None:
    if text is None:
        return None
    pairs = (line.partition("=") for line in text.splitlines())
    return {key: value for key, mark, value in pairs if mark and _KEY.fullmatch(key)}
