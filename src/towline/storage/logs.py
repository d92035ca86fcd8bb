"""Log files by byte offset: which there are, what to ask for, and what came back.

The files of all attempts stand below `attempts/` of the job directory, and are named here relative to that:

    1/main.out 1/main.err            what Slurm, Towline and the tasks wrote that have no files of their own
    1/main-3.out                     the same of task 3 of an array
    1/roles/policy/main.out          the same of a role
    1/ranks/3-node2.out              of rank 3, on node2; below `roles/policy/` or `task-3/` where there are such
    1/nodes/1-node2.out              of all ranks of the job's second node
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, cast

Stream = Literal["out", "err"]

MOST_BYTES = 4 << 20
"""Most bytes in one answer, shared by the files that have grown; what is left comes with the next."""
MEMORY = 64
"""So many bytes before the new ones come with them; by those that were read last it is seen to be the same file."""

_NAME = re.compile(
    r"(?P<attempt>[1-9]\d*)/"
    r"(?:main(?:-(?P<task>\d+))?|roles/(?P<mains_role>[a-z0-9-]+)/main"
    r"|(?:task-(?P<own_task>\d+)/|roles/(?P<role>[a-z0-9-]+)/)?(?P<place>ranks|nodes)/(?P<number>\d+)-(?P<node>[\w.-]+))"
    r"\.(?P<stream>out|err)",
    re.ASCII,
)
_NODE = re.compile(r"[\w.-]+", re.ASCII)


@dataclass(frozen=True)
class LogFile:
    """What a log file has.

    Attributes:
        attempt: number of the attempt.
        stream: `out` or `err`.
        role: the role whose it is, in a job with roles.
        rank: the rank whose it is; None for a file of several.
        node: the node whose it is, or that the rank ran on.
        task: the task of the array whose it is.
    """

    attempt: int
    stream: Stream
    role: str = ""
    rank: int | None = None
    node: str = ""
    task: int | None = None


def log_file(name: str) -> LogFile | None:
    """What the file of that name has; None when it is no log."""
    found = _NAME.fullmatch(name)
    if not found:
        return None
    task = found["task"] or found["own_task"]
    return LogFile(
        int(found["attempt"]),
        cast("Stream", found["stream"]),
        found["role"] or found["mains_role"] or "",
        int(found["number"]) if found["place"] == "ranks" else None,
        found["node"] or "",
        int(task) if task else None,
    )


@dataclass(frozen=True)
class LogChoice:
    """Which of a job's log files are meant; all of them when nothing is said.

    Attributes:
        role: of this role only.
        rank: of this rank only (of each role, when none is named).
        node: of this node, or of the ranks on it.
        attempt: of this attempt only; when not given, of the newest that has begun and of those after it.
    """

    role: str = ""
    rank: int | None = None
    node: str = ""
    attempt: int | None = None

    def __post_init__(self) -> None:
        if self.node and not _NODE.fullmatch(self.node):
            raise ValueError(f"{self.node!r} is not the name of a node")

    @property
    def split(self) -> bool:
        """Whether it names what only a job with files for each rank or node has."""
        return self.rank is not None or bool(self.node)

    def patterns(self, roles: Sequence[str] = (), tasks: Iterable[int] | None = None) -> tuple[str, ...]:
        """Patterns in the shell's manner for the files in an attempt's directory.

        Args:
            roles: the job's roles.
            tasks: those tasks of an array; None for any other job.
        """
        if tasks is not None:
            return tuple(each for task in sorted(tasks) for each in self._of(f"main-{task}", f"task-{task}/"))
        if not roles:
            return self._of("main", "")
        chosen = [self.role] if self.role else list(roles)
        own = () if self.role or self.split else ("main.out", "main.err")
        return (*own, *(each for role in chosen for each in self._of(f"roles/{role}/main", f"roles/{role}/")))

    def _of(self, main: str, place: str) -> tuple[str, ...]:
        mains = () if self.split else (f"{main}.out", f"{main}.err")
        ranks = f"{place}ranks/{'[0-9]*' if self.rank is None else self.rank}-{self.node or '*'}.[oe]*"
        nodes = () if self.rank is not None else (f"{place}nodes/[0-9]*-{self.node or '*'}.[oe]*",)
        return (*mains, ranks, *nodes)


@dataclass(frozen=True)
class Question:
    """What is asked about a job's logs.

    Attributes:
        directory: the job directory.
        patterns: which files, see `LogChoice.patterns`.
        task: the array's task that it is about, if it is about one.
        first, last: numbers of the attempts; without a first, the newest that has begun.
        tail: begin with so many last lines of each file that is not known yet.
        in_turn: have each file whole before the next; else all that have grown share an answer.
    """

    directory: str
    patterns: tuple[str, ...]
    task: int | None = None
    first: int | None = None
    last: int | None = None
    tail: int | None = None
    in_turn: bool = False

    def arguments(self, offsets: Mapping[str, int | None]) -> tuple[str, ...]:
        """Arguments of the script `read-logs`.

        Args:
            offsets: file name → bytes already read, or None when no more of it is wanted.
        """
        numbers = (self.task, self.first, self.last, self.tail)
        words = ("" if number is None else str(number) for number in numbers)
        known = (word for name, offset in offsets.items() for word in (name, "-" if offset is None else str(offset)))
        share = "turn" if self.in_turn else "share"
        return (self.directory, *words, share, str(MOST_BYTES), str(MEMORY), " ".join(self.patterns), *known)


@dataclass(frozen=True)
class LogSlice:
    """What was added to one log file, or that it is shorter than what was read of it.

    Attributes:
        name: file name below `attempts/`.
        size: the file's size in bytes.
        at: the offset of the new bytes.
        before: up to `MEMORY` bytes before that.
        data: the new bytes.
    """

    name: str
    size: int
    at: int
    before: bytes
    data: bytes


@dataclass(frozen=True)
class AttemptSign:
    """What an attempt's directory shows.

    Attributes:
        number: number of the attempt.
        begun: whether its batch script has started.
        ended: whether it had written its end before the slices were taken; an array, whether all tasks that began
            had.
        split: whether its ranks or nodes have files of their own.
    """

    number: int
    begun: bool = False
    ended: bool = False
    split: bool = False


@dataclass(frozen=True)
class LogAnswer:
    """One answer about a job's logs.

    Attributes:
        attempts: every attempt, oldest first.
        first: number of the first one whose files were looked at; 0 for none.
        slices: one for each file that is longer or shorter than what is known of it, oldest attempt first.
        cut: whether a file has more than came.
    """

    attempts: tuple[AttemptSign, ...] = ()
    first: int = 0
    slices: tuple[LogSlice, ...] = ()
    cut: bool = False

    def attempt(self, number: int) -> AttemptSign:
        """What that attempt shows."""
        return next((each for each in self.attempts if each.number == number), AttemptSign(number))


def parse_logs(stdout: bytes) -> LogAnswer:
    """Read the answer of the script `read-logs`.

    Raises:
        ValueError: it is not such an answer.
    """
    attempts: list[AttemptSign] = []
    heads: list[list[str]] = []
    first, cut, line, at = 0, False, [""], 0
    while line[0] != "data":
        line, at = _take_line(stdout, at)
        if line[0] == "attempt":
            number, *signs = line[1:]
            attempts.append(AttemptSign(int(number), *(sign == "1" for sign in signs)))
        elif line[0] == "first":
            first = int(line[1])
        elif line[0] == "file":
            heads.append(line[1:])
        elif line[0] == "more":
            cut = True
        elif line[0] != "data":
            raise ValueError(f"not an answer about logs: {stdout[:80]!r}")
    slices: list[LogSlice] = []
    view = memoryview(stdout)
    for name, *numbers in heads:
        size, new, start, count = map(int, numbers)
        if at + count > len(stdout):
            raise ValueError(f"not all of {name} came")
        border = at + min(new - start, count)
        slices.append(LogSlice(name, size, new, bytes(view[at:border]), bytes(view[border : at + count])))
        at += count
        cut = cut or start + count < size
    return LogAnswer(tuple(attempts), first, tuple(slices), cut)


def _take_line(data: bytes, at: int) -> tuple[list[str], int]:
    end = data.find(b"\n", at)
    if end < 0:
        raise ValueError(f"an answer about logs broke off: {data[at : at + 80]!r}")
    return data[at:end].decode("ascii", "replace").split(" "), end + 1
