"""The content of local files by its SHA-256; what was read once is not read again while the file is the same."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import stat
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from towline.models.code import CodeFile
from towline.storage.results import safe_link
from towline.storage.secret_files import HEAD, secret_by_content, secret_by_name

_FRESH = 2 * 10**9
"""Nanoseconds: a file that was changed so recently may change again without another time (FAT has steps of 2 s)."""
_SECRET = "secret"  # noqa: S105  a mark in the cache
LOOKS_SECRET = "it looks like a secret"  # noqa: S105


@dataclass(frozen=True)
class Contents:
    """What is in a directory.

    Attributes:
        files: path → what is there.
        left_out: path → why it may not leave this machine.
    """

    files: dict[str, CodeFile]
    left_out: dict[str, str]


class Digests:
    """The digests of one directory's files, kept in a file between calls.

    Args:
        folder: the directory.
        cache: the file; made with its directory.
    """

    def __init__(self, folder: Path, cache: Path) -> None:
        self._folder = folder
        self._cache = cache
        self._known = _read(cache)
        self._now = time.time_ns()
        self._seen: dict[str, list[object]] = {}

    def contents(self, paths: Iterable[str]) -> Contents:
        """Look at files; one that is gone is left away.

        Raises:
            OSError: one cannot be read.
        """
        files: dict[str, CodeFile] = {}
        left_out: dict[str, str] = {}
        for path in paths:
            try:
                found = self._look(path)
            except FileNotFoundError:
                continue
            if isinstance(found, str):
                left_out[path] = found
            else:
                files[path] = found
        if self._seen != self._known:
            _write(self._cache, self._seen)
        return Contents(files, left_out)

    def _look(self, path: str) -> CodeFile | str:
        place = os.path.join(self._folder, path)
        status = os.lstat(place)
        if stat.S_ISLNK(status.st_mode):
            target = os.readlink(place)
            return CodeFile(f"-> {target}") if safe_link(path, target) else f"it is a link that leads out, to {target}"
        if not stat.S_ISREG(status.st_mode):
            return "it is no file"
        if secret_by_name(path):
            return LOOKS_SECRET
        digest = self._digest(path, place, status)
        return LOOKS_SECRET if digest == _SECRET else CodeFile(digest, bool(status.st_mode & 0o100), status.st_size)

    def _digest(self, path: str, place: str, status: os.stat_result) -> str:
        state: list[object] = [status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino]
        known = self._known.get(path)
        digest = str(known[-1]) if known and known[:-1] == state else _digest_of(place)
        if max(status.st_mtime_ns, status.st_ctime_ns) < self._now - _FRESH:
            self._seen[path] = [*state, digest]
        return digest


def _digest_of(place: str) -> str:
    with open(place, "rb", buffering=0) as file:
        piece = file.read(1 << 20)
        if secret_by_content(piece[:HEAD]):
            return _SECRET
        total = hashlib.sha256(piece)
        while piece := file.read(1 << 20):
            total.update(piece)
    return total.hexdigest()


def _read(cache: Path) -> dict[str, list[object]]:
    try:
        found: object = json.loads(cache.read_bytes())
    except (OSError, ValueError):
        return {}
    return cast("dict[str, list[object]]", found) if isinstance(found, dict) else {}


def _write(cache: Path, seen: dict[str, list[object]]) -> None:
    """Another process may do the same at the same time; each file is whole."""
    with contextlib.suppress(OSError):
        cache.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        new = cache.with_name(f"{cache.name}.{os.getpid()}")
        new.write_text(json.dumps(seen))
        os.replace(new, cache)
