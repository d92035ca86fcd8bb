"""A job's results: the list of them, and what a tree made by a job may bring home.

A tree that a job wrote is not trusted: what leaves its directory, or is neither file, directory nor a link
within it, is refused by name.
"""

from __future__ import annotations

import fnmatch
import posixpath
from collections.abc import Sequence
from dataclasses import dataclass, replace

from towline.models.tree import FileState, Tree, TreeFile
from towline.storage.ignore import is_covered, read_patterns


@dataclass(frozen=True)
class ResultFile:
    """A regular file below a job's results.

    Attributes:
        path: path below the results directory; may hold any character but NUL.
        size: in bytes.
        modified: seconds since 1970 on the file system's clock.
        readable: False for a directory whose content cannot be listed.
    """

    path: str
    size: int
    modified: float
    readable: bool = True


def parse_tree(stdout: bytes) -> Tree:
    """Read the answer of the script `list-results`; everything sorted by path.

    Raises:
        ValueError: it is not such an answer.
    """
    rsync, *items = stdout.removesuffix(b"\0").decode("utf-8", "surrogateescape").split("\0")
    if not stdout.endswith(b"\0") or len(items) % 2:
        raise ValueError("the listing ends within an entry")
    entries = sorted((_Entry.of(head, target) for head, target in zip(items[::2], items[1::2], strict=True)), key=_path)
    return Tree(
        files=tuple(each.file for each in entries if each.kind == "f"),
        folders=tuple(each.file.path for each in entries if each.kind == "d" and each.file.path),
        links=tuple((each.file.path, each.target) for each in entries if each.kind == "l"),
        others=tuple(each.file.path for each in entries if each.kind not in "fdlun"),
        unreadable=tuple(each.file for each in entries if each.kind == "u"),
        rsync=rsync,
        now=next((each.file.state.modified for each in entries if each.kind == "n"), None),
    )


@dataclass(frozen=True)
class _Entry:
    kind: str
    file: TreeFile
    target: str

    @classmethod
    def of(cls, head: str, target: str) -> _Entry:
        kind, size, modified, mode, inode, path = head.split(" ", 5)
        seconds, _, fraction = modified.partition(".")
        time = int(seconds) * 10**9 + int(fraction[:9].ljust(9, "0"))
        return cls(kind, TreeFile(path, FileState(int(size), time), int(mode, 8), inode), target)


def _path(entry: _Entry) -> str:
    return entry.file.path


def result_files(tree: Tree) -> tuple[ResultFile, ...]:
    """The regular files, and the directories that cannot be listed, as they are shown."""
    found = [
        ResultFile(each.path, each.state.size, each.state.modified / 1e9, readable=readable)
        for files, readable in ((tree.files, True), (tree.unreadable, False))
        for each in files
    ]
    return tuple(sorted(found, key=lambda each: each.path))


def admit(tree: Tree, reserved: str) -> tuple[Tree, tuple[str, ...]]:
    """What of a tree may come home, and the paths of what must stay.

    Refused are paths that lead out of the tree, links that do, what is neither file, directory nor link, and what is
    below `reserved`, the name that the transfer itself needs at the destination.
    """

    def good(path: str) -> bool:
        return safe_member_path(path) == path and path.split("/")[0] != reserved

    links = tuple((path, target) for path, target in tree.links if good(path) and safe_link(path, target))
    kept = replace(
        tree,
        files=tuple(each for each in tree.files if good(each.path)),
        folders=tuple(path for path in tree.folders if good(path)),
        links=links,
        others=(),
    )
    refused = {
        *(each.path for each in tree.files if not good(each.path)),
        *(path for path in tree.folders if not good(path)),
        *(path for path, _ in tree.links),
        *tree.others,
    } - {path for path, _ in links}
    return kept, tuple(sorted(refused))


def select(tree: Tree, patterns: Sequence[str]) -> Tree:
    """What of a tree is meant by patterns such as `*.pt`, `checkpoints/` or `logs/**/events.*`; all without any.

    They are read as those of ignore files: without a slash in its middle one counts in every directory, and one that
    means a directory means all that is in it.
    """
    if not patterns:
        return tree
    read = tuple(found for each in patterns for found in read_patterns(each))
    return replace(
        tree,
        files=tuple(each for each in tree.files if is_covered(each.path, read)),
        folders=tuple(path for path in tree.folders if is_covered(f"{path}/x", read)),
        links=tuple(each for each in tree.links if is_covered(each[0], read)),
        unreadable=tuple(each for each in tree.unreadable if is_covered(f"{each.path}/x", read)),
    )


QUIET = 10
"""Seconds after which a file that nothing was written to counts as whole."""
_APPENDED = ("events.out.tfevents.*", "*.tfevents", "*.wandb", "*.log", "*.out", "*.err", "*.jsonl", "*.ndjson")
"""Files that programs only add to: what is there of them is of use at any time."""
_BEGUN = ("*.tmp", "*.temp", "*.part", "*.partial", "*.incomplete", "*.crdownload", "*.lock", "*~", "tmp-*")
"""Names that programs give to what they have not finished, and directories of such files."""


def is_appended(path: str) -> bool:
    """Whether programs only add to a file of that name (event files, logs), so that any beginning of it is of use."""
    name = path.rpartition("/")[2]
    return any(fnmatch.fnmatchcase(name, each) for each in _APPENDED)


def is_begun(path: str) -> bool:
    """Whether the name says that a file, or a directory that it is in, is not finished."""
    return any(fnmatch.fnmatchcase(part, each) for part in path.split("/") for each in _BEGUN)


def without_unfinished(tree: Tree) -> tuple[Tree, tuple[str, ...]]:
    """What of a tree is whole as far as its names and times tell, and the paths of the rest.

    Once the job has ended all is whole. A time that is ahead by more than a minute was set on purpose.
    """
    now = tree.now
    if now is None:
        return tree, ()

    def whole(file: TreeFile) -> bool:
        age = (now - file.state.modified) / 1e9
        return is_appended(file.path) or (not is_begun(file.path) and not -60 < age < QUIET)

    kept = tuple(file for file in tree.files if whole(file))
    return replace(tree, files=kept), tuple(file.path for file in tree.files if not whole(file))


def safe_member_path(name: str) -> str | None:
    """The plain form of a path below the destination, or None when it would leave it."""
    path = posixpath.normpath(name)
    if name.startswith("/") or path == ".." or path.startswith("../") or "\0" in name:
        return None
    return path


def safe_link(path: str, target: str) -> bool:
    """Whether a symbolic link at `path` that points to `target` stays below the destination.

    A way up is admitted only at the target's beginning: after a name that may itself be a link, the way
    that `..` takes cannot be read off the text.
    """
    parts = [part for part in target.split("/") if part not in ("", ".")]
    names = [index for index, part in enumerate(parts) if part != ".."]
    if target.startswith("/") or not target or "\0" in target or (names and ".." in parts[names[0] :]):
        return False
    return safe_member_path(posixpath.join(posixpath.dirname(path), target)) is not None
