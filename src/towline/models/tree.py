"""A directory tree on the other side, as a listing describes it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class FileState:
    """What tells one content of a file from another without reading it.

    Attributes:
        size: in bytes.
        modified: nanoseconds since 1970 on its file system's clock.
    """

    size: int
    modified: int


@dataclass(frozen=True)
class TreeFile:
    """A regular file.

    Attributes:
        path: path below the tree's root; any character but NUL.
        state: its size and time.
        mode: its permission bits.
        inode: the same text for hard links to one file; empty when not known.
    """

    path: str
    state: FileState
    mode: int = 0o600
    inode: str = ""


@dataclass(frozen=True)
class Tree:
    """What is in a directory.

    Attributes:
        files: regular files.
        folders: paths of directories.
        links: paths of symbolic links, each with its target.
        others: paths of what is none of these (pipes, sockets, devices).
        unreadable: directories that cannot be listed, with their times.
        rsync: where rsync is on that side; empty when it is not on PATH.
        now: the time there, like those of files, while a job may still write; else None.
    """

    files: tuple[TreeFile, ...] = ()
    folders: tuple[str, ...] = ()
    links: tuple[tuple[str, str], ...] = ()
    others: tuple[str, ...] = ()
    unreadable: tuple[TreeFile, ...] = ()
    rsync: str = ""
    now: int | None = None
