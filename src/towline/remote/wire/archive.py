"""The bytes of one operation: the header line and a tar of its files, arguments, script and runner.

The archive is the same for the same operation, and large local files pass through in blocks. Its last member is the
runner (or for a channel that has one an empty file): as long as that was not sent whole, nothing can have run.
"""

from __future__ import annotations

import shlex
import stat
import tarfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum
from pathlib import Path, PurePosixPath

from towline.models.errors import TransferFailed, UsageError
from towline.remote.base import Operation
from towline.remote.wire.framing import TEXT, header, runner, server

_BLOCK = 512
_CHUNK = 256 * 1024
_SHORT, _OCTAL = 99, 8**11
"""The longest name and the size that a plain header has no room for."""


@dataclass(frozen=True)
class _Member:
    head: bytes
    source: bytes | Path
    size: int

    @property
    def padding(self) -> bytes:
        return bytes(-self.size % _BLOCK)

    @property
    def length(self) -> int:
        return len(self.head) + self.size + len(self.padding)


class Channel(Enum):
    """What a channel does with an operation."""

    SINGLE = "single"
    """It ends with it."""
    FIRST = "first"
    """It goes on to serve others."""
    SERVING = "serving"
    """It has served others, and has the programs already."""


@dataclass(frozen=True)
class Payload:
    """Everything that goes to the other side's stdin for one operation.

    Attributes:
        header: the line in front; for an operation without files on a serving channel all that is sent.
        members: the archive's members in order.
        sent: told of each piece's size after it was handed over.
    """

    header: bytes
    members: tuple[_Member, ...]
    sent: Callable[[int], None] | None = None

    @classmethod
    def of(cls, operation: Operation, nonce: str, *, shell: str = "/bin/sh", to: Channel = Channel.SINGLE) -> Payload:
        """Build it; sizes of local files are taken now, their content when it is sent.

        Args:
            operation: what is to run.
            nonce: this call's.
            shell: the POSIX shell on the other side.
            to: what kind of channel takes it.

        Raises:
            UsageError: a file's name leads out of the operation's directory.
            TransferFailed: a local file is missing or not a regular file.
        """
        mode = "survive" if operation.survives else "stop"
        if to is Channel.SERVING and not operation.files and not operation.where:
            text = _text(operation)
            return cls(header(nonce, len(text), mode, TEXT) + text, ())
        members = (
            _member("files", b"", kind=tarfile.DIRTYPE),
            *(_member(_inside(name), content) for name, content in sorted(operation.files.items())),
            _member("args", _arguments(operation.args)),
            _member("script", _encode(operation.script)),
            _LAST[to](shell),
        )
        size = sum(member.length for member in members) + 2 * _BLOCK
        return cls(header(nonce, size, mode, operation.where), members, operation.sent)

    @property
    def size(self) -> int:
        """Bytes in all."""
        return len(self.header) + sum(member.length for member in self.members) + len(self._end)

    def chunks(self) -> Iterator[bytes]:
        """The bytes, in order; see `_pieces`."""
        for piece in self._pieces():
            yield piece
            if self.sent:
                self.sent(len(piece))

    def _pieces(self) -> Iterator[bytes]:
        """The bytes in pieces of at most a few hundred KiB; the last member's end is in the last one.

        Raises:
            TransferFailed: a local file cannot be read or changed its size meanwhile.
        """
        waiting = bytearray(self.header)
        for member in self.members:
            waiting += member.head
            for piece in _content(member):
                waiting += piece
                if len(waiting) >= _CHUNK and member is not self.members[-1]:
                    yield bytes(waiting)
                    waiting.clear()
            waiting += member.padding
        yield bytes(waiting) + self._end

    @property
    def _end(self) -> bytes:
        return bytes(2 * _BLOCK) if self.members else b""


_LAST: dict[Channel, Callable[[str], _Member]] = {
    Channel.SINGLE: lambda shell: _member("runner", runner(shell)),
    Channel.FIRST: lambda shell: _member("runner", server(shell)),
    Channel.SERVING: lambda _: _member("go", b""),
}


def _arguments(args: tuple[str, ...]) -> bytes:
    for arg in args:
        if "\0" in arg:
            raise UsageError("an argument of a remote operation must not contain NUL")
    return _encode(shlex.join(("set", "--", *args)) + "\n")


def _text(operation: Operation) -> bytes:
    """A script that runs the operation if it is whole, and nothing of it if it was cut anywhere."""
    body = _arguments(operation.args) + _encode(operation.script)
    return b"towline_text='" + body.replace(b"'", b"'\\''") + b'\'\neval "$towline_text"'


def _encode(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def _inside(name: str) -> str:
    path = PurePosixPath(name)
    if not path.name or path.is_absolute() or ".." in path.parts or "\0" in name:
        raise UsageError(f"{name!r} is not a relative path inside the operation's directory")
    return f"files/{path}"


def _member(name: str, source: bytes | Path, *, kind: bytes = tarfile.REGTYPE) -> _Member:
    executable = kind == tarfile.DIRTYPE
    if isinstance(source, Path):
        size, executable = measure(source)
    else:
        size = len(source)
    if len(encoded := _encode(name)) <= _SHORT and kind == tarfile.REGTYPE and size < _OCTAL:
        return _Member(_head(encoded, size, executable), source, size)
    info = tarfile.TarInfo(name)
    info.type, info.size, info.mode = kind, size, 0o700 if executable else 0o600
    info.mtime = 1  # tar warns of 0
    return _Member(info.tobuf(tarfile.GNU_FORMAT, "utf-8", "surrogateescape"), source, size)


def _head(name: bytes, size: int, executable: bool) -> bytes:
    """The header of a plain file as `tarfile` makes it, in a tenth of the time: trees have many."""
    mode = 0o700 if executable else 0o600
    numbers = b"%07o\0%07o\0%07o\0%011o\0%011o\0" % (mode, 0, 0, size, 1)
    head = name.ljust(100, b"\0") + numbers
    rest = (b"0" + bytes(100) + b"ustar  \0").ljust(_BLOCK - len(head) - 8, b"\0")
    return head + b"%06o\0 " % (sum(head) + 8 * 0x20 + sum(rest)) + rest


def measure(path: Path) -> tuple[int, bool]:
    """A local file's size, and whether its owner may execute it.

    Raises:
        TransferFailed: it is missing, not a regular file, or cannot be looked at.
    """
    try:
        found = path.stat()
    except OSError as error:
        raise TransferFailed(f"{path} cannot be sent", why=error.strerror or str(error)) from None
    if not stat.S_ISREG(found.st_mode):
        raise TransferFailed(f"{path} cannot be sent", why="It is not a regular file.")
    return found.st_size, bool(found.st_mode & 0o100)


def _content(member: _Member) -> Iterator[bytes]:
    if isinstance(member.source, bytes):
        yield member.source
        return
    left = member.size
    try:
        with member.source.open("rb") as file:
            while left and (piece := file.read(min(left, _CHUNK))):
                left -= len(piece)
                yield piece
    except OSError as error:
        raise TransferFailed(f"{member.source} cannot be sent", why=error.strerror or str(error)) from None
    if left:
        raise TransferFailed(f"{member.source} cannot be sent", why="It became shorter while it was being sent.")
