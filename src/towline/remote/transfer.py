"""Files between this machine and a cluster, over the same connection as everything else.

Uploads are one stream into a directory of temporary names beside their place, then renamed: nothing half appears.
A download of one file goes on where an earlier one was cut, as long as size and time of the source are the same.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from towline.models.errors import TransferFailed
from towline.remote.base import Ending, Operation, Outcome, Remote

_MISSING, _NO_PLACE = 44, 45
_TRIES = 5
"""Times in a row that a download may be cut without a byte of progress between."""

Progress = Callable[[int, int], None]
"""Told the bytes done so far and in all."""

# Files are renamed a directory at a time, and into a new directory all at once: a process for each would take longer
# than the transfer.
_PLACE = f"""
mkdir -p "${{1%/*}}/" || exit {_NO_PLACE}
if mkdir "$1" 2>/dev/null; then
    find . ! -name . -prune -exec sh -c 'to=$1; shift; mv -f -- "$@" "$to/"' sh "$1" {{}} + || exit {_NO_PLACE}
    exit 0
fi
find . -type d | while IFS= read -r folder; do
    mkdir -p "$1/$folder" || exit {_NO_PLACE}
    find "$folder" -maxdepth 1 -type f -exec sh -c \
        'to=$1; shift; mv -f -- "$@" "$to/"' sh "$1/$folder" {{}} + || exit {_NO_PLACE}
done
"""
_SEND = f"""
[ -f "$1" ] && [ -r "$1" ] || {{ echo "$1 is not a file that can be read" >&2; exit {_MISSING}; }}
exec <"$1"
known=$(stat -L -c '%s %Y' "$1") || exit {_MISSING}
echo "$known"
[ "$known" = "$2" ] && from=$3 || from=0
echo "$from"
if [ "$from" -eq 0 ]; then cat; else tail -c "+$((from + 1))"; fi
"""


@dataclass(frozen=True)
class Downloaded:
    """A file that is here now.

    Attributes:
        bytes: its size.
        received: how many of them came over the network in this call.
    """

    bytes: int
    received: int


class Transfers:
    """Moves files over a remote.

    Args:
        remote: of the login hosts, or of a host of the site's own for transfers.
        path_map: prefixes of paths on the cluster → what they are called on the host for transfers.
    """

    def __init__(self, remote: Remote, *, path_map: Mapping[str, str] | None = None) -> None:
        self._remote = remote
        self._map = sorted((path_map or {}).items(), key=lambda pair: -len(pair[0]))

    def there(self, path: str) -> str:
        """The path as the host for transfers has it: the longest prefix of whole components counts."""
        for prefix, target in self._map:
            rest = path.removeprefix(prefix.rstrip("/"))
            if path.startswith(prefix.rstrip("/")) and (not rest or rest.startswith("/")):
                return target.rstrip("/") + rest
        return path

    async def upload(
        self, files: Mapping[str, bytes | Path], into: str, *, progress: Progress | None = None, where: str = ""
    ) -> int:
        """Put files below a directory; each appears whole, in place of an older one of its name.

        Args:
            files: relative path → content or local file.
            into: the directory, absolute; made if it is missing.
            progress: what was handed to the connection.
            where: an existing directory of the same file system for the temporary names; by default `into`'s parent.

        Returns:
            The bytes that were sent, names and padding included.

        Raises:
            TransferFailed: no room there, no right, or the connection was lost; whole files may be in place.
        """
        there = self.there(into)
        total = sum(file.stat().st_size if isinstance(file, Path) else len(file) for file in files.values())
        done = 0

        def sent(count: int) -> None:
            nonlocal done
            done += count
            if progress:
                progress(min(done, total), total)

        beside = self.there(where) if where else os.path.dirname(there.rstrip("/")) or "/"
        operation = Operation("upload", _PLACE, (there,), files, None, where=beside, sent=sent)
        _expect(await self._remote.run(operation), f"the files could not be put into {into}")
        return done

    async def download(self, source: str, dest: Path, *, progress: Progress | None = None) -> Downloaded:
        """Bring one file home; what an earlier call left of it is not asked for again.

        Raises:
            TransferFailed: it cannot be read there or written here, or the connection was lost again and again.
        """
        intake = _Intake(source, dest, progress)
        idle = 0
        while True:
            before = intake.received
            try:
                outcome = await self._fetch(intake, self.there(source))
            finally:
                intake.close()
            if outcome.ok and intake.whole:
                return intake.finish()
            idle = 0 if intake.received > before else idle + 1
            if outcome.ending not in (Ending.UNKNOWN, Ending.NOT_STARTED) or idle >= _TRIES:
                _expect(outcome, f"{source} could not be brought home", "It goes on where it was when you try again.")
                raise TransferFailed(f"{source} changed while it was brought home", fix="Try again.")

    async def _fetch(self, intake: _Intake, source: str) -> Outcome:
        try:
            args = (source, *intake.begin())
            return await self._remote.run(Operation("download", _SEND, args, timeout=None), sink=intake.take)
        except OSError as error:
            raise TransferFailed(f"{intake.dest} could not be written", why=str(error)) from None


class _Intake:
    """Takes the stream of `_SEND`: two lines (the source's size and time, the offset), then bytes."""

    def __init__(self, source: str, dest: Path, progress: Progress | None) -> None:
        self.dest = dest
        self.received = 0
        name = hashlib.sha256(source.encode("utf-8", "surrogateescape")).hexdigest()[:12]
        self._part = dest.with_name(f".towline-{name}.part")
        self._note = dest.with_name(f".towline-{name}.source")
        self._progress = progress
        self._known = ""
        self._file: int | None = None
        self._head = b""
        self._done = 0

    @property
    def whole(self) -> bool:
        """Whether every byte is here."""
        return bool(self._known) and self._done == int(self._known.split()[0])

    def begin(self) -> tuple[str, str]:
        """What is here already: the source as it was then, and the bytes of it."""
        self._head = b""
        self.dest.parent.mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(OSError):
            return self._note.read_text(), str(self._part.stat().st_size)
        return "", "0"

    def take(self, data: bytes) -> None:
        """Write the next piece."""
        if self._file is None:
            self._head += data
            if self._head.count(b"\n") < 2:
                return
            known, offset, data = self._head.split(b"\n", 2)
            self._file = self._open(known.decode(), int(offset))
        view = memoryview(data)
        while view:
            view = view[os.write(self._file, view) :]
        self.received += len(data)
        self._done += len(data)
        if self._progress and data:
            self._progress(self._done, int(self._known.split()[0]))

    def _open(self, known: str, offset: int) -> int:
        self._known, self._done = known, offset
        file = os.open(self._part, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        os.ftruncate(file, offset)
        os.lseek(file, offset, os.SEEK_SET)
        self._note.write_text(known)
        return file

    def close(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def finish(self) -> Downloaded:
        """Give it its name and the source's time."""
        size, time = (int(word) for word in self._known.split())
        os.utime(self._part, (time, time))
        os.replace(self._part, self.dest)
        self._note.unlink(missing_ok=True)
        return Downloaded(size, self.received)


def _expect(outcome: Outcome, what: str, fix: str = "Try again; what is in place is whole.") -> None:
    if not outcome.ok:
        said = outcome.stderr.decode(errors="replace").strip() or outcome.detail
        raise TransferFailed(what, why=said, fix=fix)
