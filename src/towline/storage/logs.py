"""Log files by byte offset: what to ask for, and what came back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

Stream = Literal["out", "err"]

MOST_BYTES = 4 << 20
"""Most bytes of one file in one answer; what is left comes with the next."""


class LogFile(NamedTuple):
    """What a log file has: a stream of the job, or of one of its roles."""

    stream: Stream
    role: str = ""


def log_files(task: int | None, roles: Sequence[str] = ()) -> dict[str, LogFile]:
    """The log files of an attempt, or of one task of an array, and what each of them has."""
    name = "main" if task is None else f"main-{task}"
    files = {f"{name}.out": LogFile("out"), f"{name}.err": LogFile("err")}
    for role in roles:
        files |= {f"roles/{role}/main.out": LogFile("out", role), f"roles/{role}/main.err": LogFile("err", role)}
    return files


@dataclass(frozen=True)
class LogSlice:
    """What was added to one log file.

    Attributes:
        name: file name in the attempt's directory.
        size: the file's size in bytes, -1 when it does not exist yet.
        data: the bytes from the asked offset on; at most `MOST_BYTES`.
    """

    name: str
    size: int
    data: bytes


@dataclass(frozen=True)
class LogAnswer:
    """One answer about one attempt's logs.

    Attributes:
        newest: number of the newest attempt.
        ended: whether the attempt had written its end before the slices were taken.
        slices: one for each file that was asked for.
    """

    newest: int
    ended: bool
    slices: tuple[LogSlice, ...]


def log_arguments(directory: str, attempt: int, offsets: dict[str, int], task: int | None = None) -> tuple[str, ...]:
    """Arguments of the script `read-logs`; `offsets` maps file names to bytes already read."""
    pairs = [word for name, offset in offsets.items() for word in (name, str(offset))]
    return (directory, str(attempt), "" if task is None else str(task), str(MOST_BYTES), *pairs)


def parse_logs(stdout: bytes) -> LogAnswer:
    """Read the answer of the script `read-logs`.

    Raises:
        ValueError: it is not such an answer.
    """
    newest, rest = _take_line(stdout)
    ended, rest = _take_line(rest)
    if newest[0] != "newest" or ended[0] != "end":
        raise ValueError(f"not an answer about logs: {stdout[:80]!r}")
    slices: list[LogSlice] = []
    while rest:
        (word, name, size, count), rest = _take_line(rest)
        if word != "file" or len(rest) < int(count):
            raise ValueError(f"not a slice of a log: {word!r}")
        slices.append(LogSlice(name, int(size), rest[: int(count)]))
        rest = rest[int(count) :]
    return LogAnswer(int(newest[1]), ended[1] == "1", tuple(slices))


def parse_tail(stdout: bytes) -> dict[str, int]:
    """Read the answer of the script `tail-logs`: file name → offset in bytes.

    Raises:
        ValueError: it is not such an answer.
    """
    pairs = [line.split(" ") for line in stdout.decode().splitlines()]
    return {name: int(offset) for name, offset in pairs}


def _take_line(data: bytes) -> tuple[list[str], bytes]:
    line, mark, rest = data.partition(b"\n")
    if not mark:
        raise ValueError(f"an answer about logs broke off: {line[:80]!r}")
    return line.decode("ascii", "replace").split(" "), rest
