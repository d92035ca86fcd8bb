"""What every source of data can do: say what is there, and give it from any byte on."""

import hashlib
from typing import List, NamedTuple, Optional


class Entry(NamedTuple):
    """One file of a source.

    Attributes:
        path: below the URI; empty when the URI is the file itself.
        size: bytes; -1 when the source does not say.
        stamp: `md5:…`, `sha256:…` or `git-sha1:…` of its content, or `etag:…` and `time:…`, which can only be compared.
        handle: what the source itself calls it.
    """

    path: str
    size: int
    stamp: str
    handle: str = ""


class Found(NamedTuple):
    """What a URI means.

    Attributes:
        kind: `file` or `directory`.
        entries: its files.
        commit: a name of this very state that the source itself gives; empty for none.
    """

    kind: str
    entries: List[Entry]
    commit: str = ""

    @property
    def bytes(self) -> int:
        """Bytes of all files, as far as they are known."""
        return sum(entry.size for entry in self.entries if entry.size > 0)

    @property
    def version(self) -> str:
        """A name of this state: the same as long as every file has the same path, size and stamp."""
        told = "".join("{} {} {}\n".format(each.size, each.stamp, each.path) for each in sorted(self.entries))
        return hashlib.sha256("{}\n{}".format(self.kind, told).encode("utf-8", "surrogateescape")).hexdigest()


class Reader:
    """Bytes that are read once, from the beginning to the end."""

    def read(self, size: int = -1) -> bytes:
        """The next bytes, at most `size`; none at the end."""
        raise NotImplementedError

    def close(self) -> None:
        """Let go of them."""
        raise NotImplementedError


class Source:
    """Where data comes from."""

    def find(self) -> Found:
        """What is there.

        Raises:
            Problem: nothing, or it cannot be asked.
        """
        raise NotImplementedError

    def open(self, entry: Entry, offset: int) -> Reader:
        """The bytes of a file from `offset` on.

        Raises:
            Problem: they cannot be had.
        """
        raise NotImplementedError

    def take(self, target: str) -> Optional[Found]:
        """Where a tool of the site does the work itself: bring everything below `target`; None where none does."""
        del target
        return None
