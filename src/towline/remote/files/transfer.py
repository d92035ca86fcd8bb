"""Files between this machine and a cluster, over the same connection as everything else.

Uploads are one stream into a directory of temporary names beside their place, then renamed: nothing half appears.
A download of one file goes on where an earlier one was cut, as long as size and time of the source are the same. Whole
trees are brought home by `towline.remote.files.tree`.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from towline.models.errors import TransferFailed
from towline.models.tree import FileState
from towline.remote.base import Ending, Operation, Outcome, Remote
from towline.remote.files.parts import Parts, put
from towline.remote.wire.archive import measure

_MISSING, _NO_PLACE, _CHANGED = 44, 45, 46
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
# The open file is looked at, not its name: one that is replaced or removed meanwhile is still sent whole.
_SEND = f"""
[ -f "$1" ] && [ -r "$1" ] || {{ echo "$1 is not a file that can be read" >&2; exit {_MISSING}; }}
exec <"$1"
export LC_ALL=C
known=$(stat -c '%s %.Y' -) || exit {_MISSING}
echo "$known"
[ "$known" = "$2" ] && from=$3 || from=0
echo "$from"
if [ "$from" -eq 0 ]; then cat; else tail -c "+$((from + 1))"; fi || exit
now=$(stat -c '%s %.Y' -)
[ "$known" = "$now" ] || {{ echo "$now" >&2; exit {_CHANGED}; }}
"""


@dataclass(frozen=True)
class Downloaded:
    """A file that is here now.

    Attributes:
        bytes: its size.
        received: how many of them came over the network in this call.
        grown: whether the source became longer meanwhile; what is here is what it was at the beginning.
    """

    bytes: int
    received: int
    grown: bool = False


class Transfers:
    """Moves files over a remote.

    Args:
        remote: of the login hosts, or of a host of the site's own for transfers.
        path_map: prefixes of paths on the cluster → what they are called on the host for transfers.
        own: whether `close` closes the remote, too.

    Attributes:
        remote: the remote.
    """

    def __init__(self, remote: Remote, *, path_map: Mapping[str, str] | None = None, own: bool = False) -> None:
        self.remote = remote
        self._own = own
        self._map = sorted((path_map or {}).items(), key=lambda pair: -len(pair[0]))

    def there(self, path: str) -> str:
        """The path as the host for transfers has it: the longest prefix of whole components counts."""
        for prefix, target in self._map:
            rest = path.removeprefix(prefix.rstrip("/"))
            if path.startswith(prefix.rstrip("/")) and (not rest or rest.startswith("/")):
                return target.rstrip("/") + rest
        return path

    async def close(self) -> None:
        """Close the remote, if it serves nothing else."""
        if self._own:
            await self.remote.close()

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
            TransferFailed: a local file cannot be read, there is no room or no right there, or the connection was lost;
                whole files may be in place.
        """
        there = self.there(into)
        total = sum(measure(file)[0] if isinstance(file, Path) else len(file) for file in files.values())
        done = 0

        def sent(count: int) -> None:
            nonlocal done
            done += count
            if progress:
                progress(min(done, total), total)

        beside = self.there(where) if where else os.path.dirname(there.rstrip("/")) or "/"
        operation = Operation("upload", _PLACE, (there,), files, None, where=beside, sent=sent)
        _expect(await self.remote.run(operation), f"the files could not be put into {into}")
        return done

    async def download(
        self,
        source: str,
        dest: Path,
        *,
        progress: Progress | None = None,
        parts: Parts | None = None,
        mode: int = 0o600,
    ) -> Downloaded:
        """Bring one file home; what an earlier call left of it is not asked for again.

        A source that only becomes longer meanwhile is brought as it was at the beginning; one that changes otherwise is
        not brought.

        Args:
            source: its path on the cluster.
            dest: its place here; made with its directory, and replaced only by the whole file.
            progress: told in this thread.
            parts: where to keep what is not whole yet; beside `dest` when not given.
            mode: permission bits of the file here, less what would let others write it.

        Raises:
            TransferFailed: it cannot be read there or written here, it changed, or the connection was lost again and
                again.
        """
        intake = _Intake(source, dest, progress, parts or Parts(dest.parent))
        idle = 0
        while True:
            before = intake.received
            try:
                outcome = await self._fetch(intake, self.there(source))
            finally:
                intake.close()
            if intake.complete(outcome) and (outcome.ok or await self.begins_like(source, intake.part)):
                return intake.finish(mode, grown=not outcome.ok)
            idle = 0 if intake.received > before else idle + 1
            if outcome.ending not in (Ending.UNKNOWN, Ending.NOT_STARTED) or idle >= _TRIES:
                if outcome.exit_code == _MISSING:
                    raise SourceUnreadable(f"{source} could not be brought home", why=_said(outcome))
                if not outcome.ok and outcome.exit_code != _CHANGED:
                    _expect(
                        outcome, f"{source} could not be brought home", "It goes on where it was when you try again."
                    )
                intake.forget()
                raise SourceChanged(f"{source} changed while it was brought home", fix="Try again.")

    async def begins_like(self, source: str, part: Path) -> bool:
        """Whether a file on the cluster still begins with what is here of it, so that it has only become longer."""
        size, here = await asyncio.to_thread(_digest, part)
        script = 'head -c "$2" <"$1" | sha256sum'
        outcome = await self.remote.run(Operation("compare", script, (self.there(source), str(size)), timeout=None))
        return outcome.ok and outcome.stdout.startswith(here.encode())

    async def _fetch(self, intake: _Intake, source: str) -> Outcome:
        try:
            args = (source, *intake.begin())
            return await self.remote.run(Operation("download", _SEND, args, timeout=None), sink=intake.take)
        except OSError as error:
            raise TransferFailed(
                f"{intake.dest} could not be written",
                why=error.strerror or str(error),
                fix="Make room or choose another place, then try again; it goes on where it was.",
            ) from None


class SourceChanged(TransferFailed):
    """A file was written to while it was read, so that what came is neither its old nor its new content."""


class SourceUnreadable(TransferFailed):
    """A file is not there, is none, or may not be read."""


class _Intake:
    """Takes the stream of `_SEND`: two lines (the source's size and time, the offset), then bytes."""

    def __init__(self, source: str, dest: Path, progress: Progress | None, parts: Parts) -> None:
        self.dest = dest
        self.received = 0
        self._source = source
        self._parts = parts
        self._progress = progress
        self._state: FileState | None = None
        self._file: int | None = None
        self._head = b""
        self._done = 0

    def complete(self, outcome: Outcome) -> bool:
        """Whether every byte of one content is here."""
        if self._state is None or self._done != self._state.size:
            return False
        if outcome.exit_code != _CHANGED:
            return outcome.ok
        return parse_state(outcome.stderr.decode()).size > self._state.size

    def begin(self) -> tuple[str, str]:
        """What is here already: the source as it was then, and the bytes of it."""
        self._head = b""
        for folder in (self.dest.parent, self._parts.folder):
            folder.mkdir(parents=True, exist_ok=True)
        if found := self._parts.find(self._source):
            return state_text(found[0]), str(found[1])
        return "", "0"

    def take(self, data: bytes) -> None:
        """Write the next piece; what a growing source has beyond its size at the beginning is left out."""
        if self._file is None or self._state is None:
            self._head += data
            if self._head.count(b"\n") < 2:
                return
            known, offset, data = self._head.split(b"\n", 2)
            self._state, self._done = parse_state(known.decode()), int(offset)
            self._parts.forget(self._source, but=self._state)
            self._file = self._parts.open(self._source, self._state, self._done)
        view = memoryview(data)[: self._state.size - self._done]
        self.received += len(view)
        self._done += len(view)
        if self._progress and view:
            self._progress(self._done, self._state.size)
        while view:
            view = view[os.write(self._file, view) :]

    @property
    def part(self) -> Path:
        """Where it is until it is whole."""
        assert self._state  # noqa: S101  `complete` was true
        return self._parts.of(self._source, self._state)

    def close(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def forget(self) -> None:
        """Remove what came of a source that changed."""
        self._parts.forget(self._source)

    def finish(self, mode: int, *, grown: bool) -> Downloaded:
        """Give it its name and the source's time."""
        assert self._state  # noqa: S101  `complete` was true
        put(self.part, self.dest, self._state, mode=mode)
        return Downloaded(self._state.size, self.received, grown)


def _digest(path: Path) -> tuple[int, str]:
    """A file's size and SHA-256."""
    size, total = 0, hashlib.sha256()
    with path.open("rb") as file:
        while piece := file.read(1 << 20):
            size += len(piece)
            total.update(piece)
    return size, total.hexdigest()


def parse_state(text: str) -> FileState:
    """Read `stat`'s `%s %.Y`: the size, and seconds with nine digits behind the point."""
    size, modified = text.split()
    seconds, _, fraction = modified.partition(".")
    return FileState(int(size), int(seconds) * 10**9 + int(fraction[:9].ljust(9, "0")))


def state_text(state: FileState) -> str:
    """A file's state in `stat`'s words."""
    seconds, fraction = divmod(state.modified, 10**9)
    return f"{state.size} {seconds}.{fraction:09d}"


def _expect(outcome: Outcome, what: str, fix: str = "Try again; what is in place is whole.") -> None:
    if not outcome.ok:
        raise TransferFailed(what, why=_said(outcome), fix=fix)


def _said(outcome: Outcome) -> str:
    return outcome.stderr.decode(errors="replace").strip() or outcome.detail
