"""A job's results: the list of them, and what a tree made by a job may bring home.

A tree that a job wrote is not trusted: what leaves its directory, or is neither file, directory nor a link
within it, is refused by name.
"""

from __future__ import annotations

import posixpath
import tarfile
from dataclasses import dataclass


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


def parse_results(stdout: bytes) -> tuple[ResultFile, ...]:
    """Read the answer of the script `list-results`, sorted by path.

    Raises:
        ValueError: it is not such an answer.
    """
    found: list[ResultFile] = []
    for record in filter(None, stdout.split(b"\0")):
        kind, size, modified, path = record.split(b" ", 3)
        name = path.decode("utf-8", "surrogateescape")
        found.append(ResultFile(name, int(size), float(modified), readable=kind == b"f"))
    return tuple(sorted(found, key=lambda each: each.path))


def safe_member_path(name: str) -> str | None:
    """The path of a tar member below the destination, or None when it would leave it."""
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


def admit_member(member: tarfile.TarInfo) -> str | None:
    """The path below the destination for a member of a results tree, or None when it is refused.

    Refused are absolute names and names with a way up, links that leave the tree, devices, pipes and sockets.
    """
    path = safe_member_path(member.name)
    if path is None or not (member.isreg() or member.isdir() or member.issym() or member.islnk()):
        return None
    if member.issym() and not safe_link(path, member.linkname):
        return None
    if member.islnk() and safe_member_path(member.linkname) is None:
        return None
    return path
