"""rsync over a channel of the shared connection, for what it does better than a plain stream.

It has to be on both sides. What comes from the other side before rsync itself speaks (a banner, an rc file's words)
is taken away by a mark, as everywhere in this room; rsync alone would take it for its protocol.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import secrets
import shutil
import signal
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from towline.remote.base import Lends, Remote

MANY = 1000
"""From so many files on rsync is asked for."""
OLDER = 1 << 20
"""Bytes of an older version here from which on only the differences are asked for."""
_PATIENCE = 5.0
"""Seconds for rsync to put away what it has when it is stopped."""
_SILENCE = 300
"""Seconds without a byte, not even of rsync's own keepalives, after which it gives up."""
_WORDS = 4000
_SOME = (0, 23, 24)
"""Exit statuses after which the rest is in place: all of it; some could not be read; some had vanished."""
_PROGRESS = re.compile(rb"\s([0-9]+)\s+[0-9]+%\s.*?(?:xfr#([0-9]+)|$)")
_MOVED = {False: re.compile(rb"Total bytes received: ([0-9]+)"), True: re.compile(rb"Total bytes sent: ([0-9]+)")}
_LIFE = '(read -r line </dev/fd/"$towline_life"; kill -TERM 0) >/dev/null 2>&1 & '
"""Ends the whole group, rsync too, when this process is gone: it would go on to its end."""
_FILTER = '"$@" | { while IFS= read -r line; do [ "$line" != "$towline_mark" ] || exec cat; done; }'
"""Runs the command, and hands on what it writes after the mark."""


@dataclass(frozen=True)
class Done:
    """What rsync did.

    Attributes:
        moved: bytes that it received, or sent.
        failure: its words when it did not get through; files that it could not read are no failure.
    """

    moved: int
    failure: str = ""


@dataclass(frozen=True)
class Choice:
    """Which way files come, and why.

    Attributes:
        rsync: whether by rsync; else as a tar stream, and large ones by offset.
        reason: in a few words.
    """

    rsync: bool
    reason: str

    def __str__(self) -> str:
        return f"{'rsync' if self.rsync else 'tar'}: {self.reason}"


def choose(remote: Remote, there: str, *, files: int, older: int, failed: str = "") -> Choice:
    """Decide on the way for some files of a tree.

    Args:
        remote: the way to the other side.
        there: where rsync is on the other side; empty when it is not.
        files: how many files there are to bring.
        older: of how many of them a large older version is here.
        failed: why rsync did not work a moment ago.
    """
    if failed:
        return Choice(False, f"rsync did not work ({failed})")
    if files < MANY and not older:
        return Choice(False, "few files, and none of which a large older version is here")
    if not isinstance(remote, Lends):
        return Choice(False, "the other side is this machine")
    if not shutil.which("rsync"):
        return Choice(False, "there is no rsync on this machine")
    if not there:
        return Choice(False, "there is no rsync on the other side's PATH")
    return Choice(True, f"of {older} files only what is new" if older else f"{files} files")


async def pull(
    lender: Lends,
    root: str,
    dest: Path,
    names: Sequence[str],
    *,
    scratch: Path,
    lock: int,
    progress: Callable[[int, int], None],
) -> Done:
    """Bring files of a tree; each appears whole, in place of an older one of its name.

    Args:
        lender: the connection.
        root: the tree on the other side, absolute.
        dest: the directory here.
        names: paths below both; regular files, no part of whose way here is a link.
        scratch: a directory for what is not whole yet; a later call goes on with what it finds there.
        lock: a descriptor that lives as long as rsync does.
        progress: told the bytes and the number of files done.

    Raises:
        Unreachable, AccessRefused, ConfigError: see `Lends`.
    """
    partial = scratch / "rsync"
    partial.mkdir(parents=True, exist_ok=True)
    ends = (f"towline:{_plain(root)}/", f"{dest}/")
    return await _move(lender, ends, names, partial=str(partial), fds=(lock,), output=_Output(progress))


async def push(
    lender: Lends,
    source: Path,
    root: str,
    names: Sequence[str],
    *,
    scratch: str,
    progress: Callable[[int, int], None],
) -> Done:
    """Send files of a tree; each appears whole, in place of an older one of its name.

    Args:
        lender: the connection.
        source: the tree here.
        root: the directory on the other side, absolute.
        names: paths below both; regular files.
        scratch: an existing directory there for what is not whole yet.
        progress: told the bytes and the number of files done.

    Raises:
        Unreachable, AccessRefused, ConfigError: see `Lends`.
    """
    ends = (f"{source}/", f"towline:{_plain(root)}/")
    return await _move(lender, ends, names, partial=scratch, fds=(), output=_Output(progress, sends=True))


async def _move(
    lender: Lends, ends: tuple[str, str], names: Sequence[str], *, partial: str, fds: tuple[int, ...], output: _Output
) -> Done:
    mark = f"towline-{secrets.token_hex(16)}"
    async with lender.lend(f"exec /bin/sh -c 'echo {mark}; exec \"$@\"'") as ssh:
        life, ours = os.pipe()
        program = f"towline_mark={mark} towline_life={life}; {_LIFE}{_FILTER}"
        shell = " ".join(map(_word, ("/bin/sh", "-c", program, "towline", *ssh)))
        argv = (
            *("rsync", "--times", "--perms", "--chmod=u+rw,go-w,a-s", "--omit-dir-times", "--protect-args"),
            *("--blocking-io", f"--timeout={_SILENCE}"),  # `cat` in the filter knows no other I/O
            *("--files-from=-", "--from0", f"--partial-dir={partial}", f"--temp-dir={partial}"),
            *("--info=progress2,stats2", "--no-human-readable", "-e", shell, *ends),
        )
        try:
            status, words = await _run(argv, b"\0".join(map(os.fsencode, names)), (*fds, life), output)
        finally:
            os.close(life)
            os.close(ours)
    return Done(output.moved, "" if status in _SOME else words or f"it ended with status {status}")


def _word(text: str) -> str:
    """A word of rsync's option -e: within quotation marks, those in it doubled."""
    return "'" + text.replace("'", "''") + "'"


def _plain(path: str) -> str:
    """A path for the other side's rsync, which would take `*`, `?` and `[` for patterns."""
    return re.sub(r"[*?[\\]", r"\\\g<0>", path) if re.search(r"[*?[]", path) else path


async def _run(argv: Sequence[str], stdin: bytes, fds: tuple[int, ...], output: _Output) -> tuple[int | None, str]:
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        *argv, stdin=pipe, stdout=pipe, stderr=pipe, start_new_session=True, pass_fds=fds
    )
    assert process.stdout  # noqa: S101  a pipe was asked for
    assert process.stderr  # noqa: S101
    try:
        _, _, words = await asyncio.gather(
            _say(process, stdin), _watch(process.stdout, output), _last_words(process.stderr)
        )
        return await process.wait(), words
    finally:
        await _stop(process)


async def _say(process: asyncio.subprocess.Process, text: bytes) -> None:
    assert process.stdin  # noqa: S101
    with contextlib.suppress(ConnectionError):
        process.stdin.write(text)
        await process.stdin.drain()
    process.stdin.close()


async def _watch(stdout: asyncio.StreamReader, output: _Output) -> None:
    while piece := await stdout.read(4096):
        output.feed(piece)


class _Output:
    """Reads what rsync prints: again and again how far it is, and at the end what it received or sent."""

    def __init__(self, progress: Callable[[int, int], None], *, sends: bool = False) -> None:
        self.moved = 0
        self._sum = _MOVED[sends]
        self._progress = progress
        self._last = b""

    def feed(self, piece: bytes) -> None:
        *lines, self._last = (self._last + piece).replace(b"\n", b"\r").split(b"\r")
        if found := next(filter(None, map(_PROGRESS.search, reversed(lines))), None):
            self._progress(int(found[1]), int(found[2] or 0))
        if found := next(filter(None, map(self._sum.match, lines)), None):
            self.moved = int(found[1])


async def _last_words(stderr: asyncio.StreamReader) -> str:
    words = b""
    while piece := await stderr.read(4096):
        words = (words + piece)[-_WORDS:]
    return words.decode(errors="replace").strip()


async def _stop(process: asyncio.subprocess.Process) -> None:
    """End it with all that it started; it keeps what it has when it is told to end."""
    for sign in (signal.SIGTERM, signal.SIGKILL):
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, sign)
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(process.wait(), _PATIENCE)
