"""The bytes of one operation: the header line and a tar of its files, arguments, script and runner.

The archive is the same for the same operation, and large local files pass through in blocks. Its last member is the
runner (or for a channel that has one an empty file): as long as that was not sent whole, nothing can have run.
"""

from __future__ import annotations

import shlex
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from towline.models.errors import TransferFailed, UsageError
from towline.remote.base import Operation
from towline.remote.framing import header, runner, server

_BLOCK = 512
_CHUNK = 256 * 1024


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


@dataclass(frozen=True)
class Payload:
    """Everything that goes to the other side's stdin for one operation.

    Attributes:
        header: the line in front.
        members: the archive's members in order.
    """

    header: bytes
    members: tuple[_Member, ...]

    @classmethod
    def of(cls, operation: Operation, nonce: str, *, shell: str = "/bin/sh", served: bool = False) -> Payload:
        """Build it; sizes of local files are taken now, their content when it is sent.

        Args:
            operation: what is to run.
            nonce: this call's.
            shell: the POSIX shell on the other side.
            served: whether it goes to a server, which has the runner already.

        Raises:
            UsageError: a file's name leads out of the operation's directory.
            TransferFailed: a local file is missing or not a regular file.
        """
        members = (
            _member("files", b"", kind=tarfile.DIRTYPE),
            *(_member(_inside(name), content) for name, content in sorted(operation.files.items())),
            _member("args", _arguments(operation.args)),
            _member("script", _encode(operation.script)),
            _member("go", b"") if served else _member("runner", runner(shell)),
        )
        return cls._with_header(members, nonce, "survive" if operation.survives else "stop")

    @classmethod
    def server(cls, nonce: str, *, shell: str = "/bin/sh") -> Payload:
        """What makes a new channel a serving one."""
        return cls._with_header((_member("runner", server(shell)),), nonce, "serve")

    @classmethod
    def _with_header(cls, members: tuple[_Member, ...], nonce: str, mode: str) -> Payload:
        size = sum(member.length for member in members) + 2 * _BLOCK
        return cls(header(nonce, size, mode), members)

    @property
    def size(self) -> int:
        """Bytes in all."""
        return len(self.header) + sum(member.length for member in self.members) + 2 * _BLOCK

    def chunks(self) -> Iterator[bytes]:
        """The bytes in pieces of at most a few hundred KiB; the last member's end is in the last one.

        Raises:
            TransferFailed: a local file cannot be read or changed its size meanwhile.
        """
        waiting = self.header
        for member in self.members:
            waiting += member.head
            for piece in _content(member):
                waiting += piece
                if len(waiting) >= _CHUNK and member is not self.members[-1]:
                    yield waiting
                    waiting = b""
            waiting += member.padding
        yield waiting + bytes(2 * _BLOCK)


def _arguments(args: tuple[str, ...]) -> bytes:
    for arg in args:
        if "\0" in arg:
            raise UsageError("an argument of a remote operation must not contain NUL")
    return _encode(shlex.join(("set", "--", *args)) + "\n")


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
        size, executable = _measure(source)
    else:
        size = len(source)
    info = tarfile.TarInfo(name)
    info.type, info.size, info.mode = kind, size, 0o700 if executable else 0o600
    info.mtime = 1  # tar warns of 0
    return _Member(info.tobuf(tarfile.GNU_FORMAT, "utf-8", "surrogateescape"), source, size)


def _measure(path: Path) -> tuple[int, bool]:
    try:
        found = path.stat()
    except OSError as error:
        raise TransferFailed(f"{path} cannot be sent", why=error.strerror or str(error)) from None
    if not path.is_file():
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
