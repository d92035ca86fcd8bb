"""Some files of a tree as one tar stream, each in the state in which it was before and after it was read."""

from __future__ import annotations

import tarfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace

from towline.models.errors import TransferFailed
from towline.models.tree import FileState, TreeFile
from towline.remote.base import Ending, Operation, Outcome
from towline.remote.files.parts import Parts
from towline.remote.files.transfer import Transfers, parse_state
from towline.remote.files.unpack import Unpacker

_GONE, _UNREADABLE, _CHANGED = 44, 45, 46
TOGETHER, _FILES = 64 << 20, 5000
"""Bytes and files of one batch: what came in it gets its name only when its end has been seen."""

_WRITTEN_TO = "it was written to while it was read"

_SEND = f"""
export LC_ALL=C
here=$PWD
cd "$1" || exit {_GONE}
look() {{ xargs -0 stat --printf '%s %.Y %n\\0' -- <"$here/wanted" 2>/dev/null; }}
look >"$here/before"
wc -c <"$here/before"
cat "$here/before"
tar -cf - --hard-dereference --no-recursion --null -T "$here/wanted" 2>"$here/words"
code=$?
look >"$here/after"
cmp -s "$here/before" "$here/after" || {{ cat "$here/after" >&2; exit {_CHANGED}; }}
[ "$code" -gt 1 ] || exit 0
cat "$here/words" >&2
exit {_UNREADABLE}
"""

Written = Callable[[int, int], None]
"""Told bytes and files that were written since the last time, in another thread."""


@dataclass
class Brought:
    """What became of the files of a batch.

    Attributes:
        whole: arrived; their parts are whole, and their state is the one that they had when they were read.
        grown: which of these became longer meanwhile.
        doubts: path → why it has to be asked for again.
        unreadable: path → why it cannot be read.
        cut: why the stream broke off; empty when it did not.
    """

    whole: list[TreeFile] = field(default_factory=list[TreeFile])
    grown: set[str] = field(default_factory=set[str])
    doubts: dict[str, str] = field(default_factory=dict[str, str])
    unreadable: dict[str, str] = field(default_factory=dict[str, str])
    cut: str = ""


def batches(files: Iterable[TreeFile]) -> Iterator[list[TreeFile]]:
    """The files in portions that are worth a call each."""
    portion: list[TreeFile] = []
    size = 0
    for file in files:
        if portion and (size + file.state.size > TOGETHER or len(portion) >= _FILES):
            yield portion
            portion, size = [], 0
        portion.append(file)
        size += file.state.size
    if portion:
        yield portion


async def fetch(transfers: Transfers, root: str, files: list[TreeFile], parts: Parts, written: Written) -> Brought:
    """Bring files as parts.

    Args:
        transfers: the way to the other side.
        root: the tree's directory there, as the cluster calls it.
        files: what to bring.
        parts: where to.
        written: see `Written`.

    Raises:
        OSError: it could not be written here.
        TransferFailed: the tree is not there any more, or its host does something else than it was asked for.
    """
    intake = _Intake(root, files, parts, written)
    wanted = b"".join(f"./{file.path}\0".encode("utf-8", "surrogateescape") for file in files)
    operation = Operation("send files", _SEND, (transfers.there(root),), {"wanted": wanted}, timeout=None)
    outcome: Outcome | None = None
    broken = ""
    try:
        with intake.unpacker:
            outcome = await transfers.remote.run(operation, sink=intake.take)
    except tarfile.TarError as error:
        broken = str(error)
    brought = _judged(intake, files, outcome, broken)
    for file in [file for file in brought.whole if file.path in brought.grown]:
        source = f"{root}/{file.path}"
        if not await transfers.begins_like(source, parts.of(source, file.state)):
            brought.whole.remove(file)
            brought.grown.remove(file.path)
            brought.doubts[file.path] = _WRITTEN_TO
    return brought


class _Intake:
    """Takes the stream of `_SEND`: a line with a length, so many bytes with the files' states, then tar."""

    def __init__(self, root: str, files: list[TreeFile], parts: Parts, written: Written) -> None:
        self.before: dict[str, FileState] = {}
        self._sources: dict[str, tuple[str, FileState]] = {}
        self.unpacker = Unpacker(parts, self._sources, lambda count, whole: written(count, whole))
        self._root = root
        self._names = {file.path for file in files}
        self._head = b""
        self._begun = False

    def take(self, data: bytes) -> None:
        if not self._begun:
            self._head += data
            length, mark, rest = self._head.partition(b"\n")
            if not mark or len(rest) < int(length):
                return
            self._begun = True
            self.before = {name: state for name, state in parse_states(rest[: int(length)]) if name in self._names}
            self._sources.update({name: (f"{self._root}/{name}", state) for name, state in self.before.items()})
            data = rest[int(length) :]
        if data:
            self.unpacker.feed(data)


def parse_states(data: bytes) -> Iterator[tuple[str, FileState]]:
    """Read what `look` in `_SEND` printed: names below the tree with their states."""
    for item in data.decode("utf-8", "surrogateescape").split("\0")[:-1]:
        size, modified, name = item.split(" ", 2)
        yield name.removeprefix("./"), parse_state(f"{size} {modified}")


def _judged(intake: _Intake, files: list[TreeFile], outcome: Outcome | None, broken: str) -> Brought:
    if outcome is None or (outcome.ending is Ending.DONE and broken and outcome.exit_code not in (_GONE, _CHANGED)):
        raise TransferFailed("what the cluster sent is no stream of files", why=broken, fix="Try again.")
    if outcome.ending is not Ending.DONE:
        return Brought(cut=outcome.detail or "the connection was lost")
    words = outcome.stderr.decode("utf-8", "replace").strip()
    if outcome.exit_code not in (0, _UNREADABLE, _CHANGED):
        raise TransferFailed(
            "the files could not be read on the cluster", why=words or f"exit code {outcome.exit_code}"
        )
    changed = outcome.exit_code == _CHANGED
    after = dict(parse_states(outcome.stderr)) if changed else intake.before
    brought = Brought()
    for file in files:
        before, now = intake.before.get(file.path), after.get(file.path)
        arrived = file.path in intake.unpacker.whole
        if before is None or now is None:
            brought.doubts[file.path] = "it vanished"
        elif arrived and (now == before or now.size > before.size):
            brought.whole.append(replace(file, state=before))
            brought.grown |= {file.path} if now != before else set()
        elif now != before:
            brought.doubts[file.path] = _WRITTEN_TO
        else:
            brought.unreadable[file.path] = _said_of(file.path, words) or "it could not be read there"
    return brought


def _said_of(path: str, words: str) -> str:
    """What tar said of a file."""
    return next((line.removeprefix("tar: ") for line in words.splitlines() if path in line), "")
