"""A working tree as a job gets it: what is in it, and which commit it stands on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class CodeFile:
    """A file of a working tree, or a symbolic link in it.

    Attributes:
        digest: SHA-256 of its content; for a link its target, after `-> `.
        executable: whether its owner may execute it.
        size: in bytes.
    """

    digest: str
    executable: bool = False
    size: int = field(default=0, compare=False)

    @property
    def target(self) -> str | None:
        """Where a link leads; None for a file."""
        return self.digest[3:] if self.digest.startswith("-> ") else None


@dataclass(frozen=True)
class Code:
    """A working tree at one moment.

    Attributes:
        folder: the directory on this machine, absolute.
        id: the same for the same content: names, bytes, which files are executable, links.
        place: the directory on the cluster that has, or will have, that content.
        files: path below the directory → what is there.
        left_out: path → why it does not go to the cluster.
        commit: git's; empty without git.
        dirty: whether the tree differs from the commit.
        diff: how, in git's words; files that git does not know are not in it.
    """

    folder: Path
    id: str
    place: str
    files: Mapping[str, CodeFile] = field(repr=False)
    left_out: Mapping[str, str] = field(default_factory=dict[str, str])
    commit: str = ""
    dirty: bool = False
    diff: bytes = field(default=b"", repr=False)

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return sum(file.size for file in self.files.values())
