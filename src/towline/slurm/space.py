"""How much may be written to a directory on the cluster (`scripts/space.sh`): the disk's room, and the quotas on it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_COUNT = r"\[?(\d+)\]?(\*?)"
_GRACE = r"(?:([^\s\d\[]\S*|\d+[^\s\d*]\S*)\s+)?"
_ROW = re.compile(rf"(\S+)\s+{_COUNT}\s+(\d+)\s+(\d+)\s+{_GRACE}{_COUNT}\s+(\d+)\s+(\d+)(?:\s+(\S+))?")
"""A file system; KiB used (in brackets where Lustre is not sure, `*` when over a limit), soft and hard limit, grace
period if one runs; the same of files."""
_HEAD = re.compile(r"Disk quotas for (usr|user|group|grp|prj|project) (\S+)")
_WHOSE = {"usr": "user", "grp": "group", "prj": "project"}
_OVER = ("none", "expired")
"""What stands for a grace period that has ended (quota(1), lfs-quota(1))."""


@dataclass(frozen=True)
class Quota:
    """What one quota allows of one thing.

    Attributes:
        whose: `user alice`, `group ml`, `project 7`.
        path: the file system or directory that it is on, in the words of the tool.
        files: whether it counts files; else KiB.
        used: so much is used.
        limit: so much may be used: the hard limit, or the soft one where its grace period has ended or it is alone.
        over: whether nothing more may be written, though `used` is below the hard limit.
    """

    whose: str
    path: str
    files: bool
    used: int
    limit: int
    over: bool = False

    @property
    def free(self) -> int:
        """What is left of it, in KiB or files."""
        return 0 if self.over else max(0, self.limit - self.used)

    @property
    def text(self) -> str:
        """How much of which quota is used."""
        used, limit = (str(each) if self.files else amount(each) for each in (self.used, self.limit))
        what = " files" if self.files else ""
        return f"the quota of {self.whose} on {self.path}: {used} of {limit}{what} used"


@dataclass(frozen=True)
class Space:
    """What limits writing to a directory.

    Attributes:
        path: the directory, or the nearest one above it that is there.
        free_kib: of the file system; None when not known.
        free_inodes: likewise; None also where inodes are made as they are needed.
        quotas: those that are set there.
    """

    path: str
    free_kib: int | None = None
    free_inodes: int | None = None
    quotas: tuple[Quota, ...] = ()

    def lacking(self, kib: int, files: int) -> str:
        """Why so much cannot be written there; empty when it can, as far as is known.

        Args:
            kib: what is to be written.
            files: files and directories that are to be made.
        """
        found = [
            f"{quota.text}, and {_needed(kib, files, quota.files)} to come"
            for quota in self.quotas
            if (files if quota.files else kib) > quota.free
        ]
        if self.free_kib is not None and kib > self.free_kib:
            found.append(
                f"{amount(kib)} are to come, and the file system of {self.path} has {amount(self.free_kib)} free"
            )
        if self.free_inodes is not None and files > self.free_inodes:
            found.append(f"{files} files are to come, and the file system of {self.path} can make {self.free_inodes}")
        return "; ".join(found)

    @property
    def full(self) -> tuple[Quota, ...]:
        """The quotas that are used up, or nearly."""
        return tuple(quota for quota in self.quotas if quota.free * 20 <= quota.limit)

    @property
    def tightest(self) -> str:
        """What is full or nearly so, for somebody who could not write there; empty when nothing is known to be."""
        full = [quota.text for quota in self.full]
        if self.free_kib is not None and self.free_kib < _LITTLE_KIB:
            full.append(f"the file system of {self.path} has {amount(self.free_kib)} free")
        if self.free_inodes is not None and self.free_inodes < _LITTLE_INODES:
            full.append(f"the file system of {self.path} can make {self.free_inodes} files more")
        return "; ".join(full)


_LITTLE_KIB, _LITTLE_INODES = 64 << 10, 1000


_FULL = re.compile(r"no space left|quota exceeded", re.IGNORECASE)


def says_full(words: str) -> bool:
    """Whether a failure's words say that there was no room (strerror(3): ENOSPC, EDQUOT)."""
    return bool(_FULL.search(words))


def parse_space(text: str) -> Space | None:
    """Read what `space` printed, other lines may stand between; None when there is nothing of it."""
    disk = re.search(r"^disk (\S+) (\S+) (\S+) (\S+) (\S+) (.*)$", text, re.MULTILINE)
    if not disk:
        return None
    kib, inodes, all_inodes, source, mount, path = disk.groups()
    quotas = (*_lustre(text), *_others(text, {source, mount}))
    return Space(path, _number(kib), None if all_inodes == "0" else _number(inodes), quotas)


def _lustre(text: str) -> Iterator[Quota]:
    for whose, name, line in re.findall(r"^lfs (user|group|project) (\S+) (.*)$", text, re.MULTILINE):
        if row := _ROW.search(line):
            yield from _quotas(f"{whose} {name}", row)


def _others(text: str, places: set[str]) -> Iterator[Quota]:
    """Of the tables of `quota -w` the lines of this file system."""
    whose = "you"
    for line in re.findall(r"^quota (.*)$", text, re.MULTILINE):
        if head := _HEAD.match(line.strip()):
            whose = f"{_WHOSE.get(head[1], head[1])} {head[2]}"
        elif (row := _ROW.match(line.strip())) and row[1] in places:
            yield from _quotas(whose, row)


def _quotas(whose: str, row: re.Match[str]) -> Iterator[Quota]:
    path = row[1]
    for files, (used, _, soft, hard, grace) in ((False, row.groups()[1:6]), (True, row.groups()[6:11])):
        over = bool(int(soft)) and int(used) > int(soft) and grace in _OVER
        if limit := int(soft) if over else int(hard) or int(soft):
            yield Quota(whose, path, files, int(used), limit, over)


def amount(kib: int) -> str:
    """A number of KiB for people."""
    if kib < 1 << 10:
        return f"{kib} KiB"
    return f"{kib / (1 << 10):.1f} MiB" if kib < 1 << 20 else f"{kib / (1 << 20):.1f} GiB"


def _needed(kib: int, files: int, of_files: bool) -> str:
    return f"{files} are" if of_files else f"{amount(kib)} are"


def _number(word: str) -> int | None:
    return int(word) if word.isdecimal() else None
