"""Bringing what a source has: many files at a time, each checked and then renamed, going on where a job was."""

import concurrent.futures
import hashlib
import os
import shutil
import threading
import time
from typing import IO, Any, Callable, Dict, List, Optional, Set

from towline.stager.problems import Problem, of_system
from towline.stager.source import Entry, Found, Source

AT_A_TIME = 16
"""Files that are brought at a time: most sources give a single stream only a part of what they can."""
TRIES = 6
"""How often in a row a file may get no further, before it counts as not to be had."""
PAUSE = 1.0
"""Seconds before a file is tried again; twice as long each time."""
_PIECE = 1 << 20


def check_names(found: Found) -> None:
    """See that every file can lie below the target, and none is where another wants a directory.

    Raises:
        Problem: one cannot; a source is not trusted to name files well.
    """
    paths: Set[str] = {entry.path for entry in found.entries}
    if len(paths) < len(found.entries):
        raise Problem("names", "two files have the same name")
    for path in paths:
        if found.kind == "file":
            continue
        parts = path.split("/")
        odd = any(part in ("", ".", "..") or len(part.encode("utf-8", "surrogateescape")) > 255 for part in parts)
        if odd or "\0" in path or "\n" in path:
            raise Problem("names", "{!r} is no name for a file here".format(path))
        for end in range(1, len(parts)):
            if "/".join(parts[:end]) in paths:
                raise Problem("names", "{!r} is a file and a directory at once".format("/".join(parts[:end])))


class Meter:
    """Counts bytes for all threads, and tells now and then how many there are, after how many seconds, and the rate."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._count = 0
        self._before = 0
        self._begin = self._told = time.monotonic()

    def add(self, count: int) -> None:
        """So many more (or, below 0, fewer) are there."""
        with self._lock:
            self._count += count
            now = time.monotonic()
            if not self._path or now - self._told < 2:
                return
            rate = max(0, int((self._count - self._before) / (now - self._told)))
            text = "{} {} {}\n".format(self._count, int(now - self._begin), rate)
            self._told, self._before = now, self._count
        replace(self._path, text)


def replace(path: str, text: str) -> None:
    """Write a small file whole; a full disk is no reason to end."""
    fresh = "{}.{}".format(path, os.getpid())
    try:
        with open(fresh, "w") as file:
            file.write(text)
        os.replace(fresh, path)
    except OSError:
        pass


class Journal:
    """Which files are there and were checked: a line for each, written when it has its name."""

    def __init__(self, path: str) -> None:
        self._lock = threading.Lock()
        self.known = set(_lines(path))
        self._file = open(path, "a", encoding="utf-8", errors="surrogateescape")  # noqa: SIM115  closed by `close`

    def add(self, entry: Entry) -> None:
        """This one is there."""
        with self._lock:
            self._file.write(line_of(entry) + "\n")
            self._file.flush()

    def close(self) -> None:
        """Nothing more comes."""
        self._file.close()


def line_of(entry: Entry) -> str:
    """A file as the manifest names it."""
    return "{} {} {}".format(entry.size, entry.stamp, entry.path)


def _lines(path: str) -> List[str]:
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            return file.read().split("\n")[:-1]  # what was cut off ends without a newline
    except OSError:
        return []


class Bringing:
    """One source that is brought below one directory: `data`, with `manifest` and what is not whole beside it."""

    def __init__(self, source: Source, folder: str, meter: Meter) -> None:
        self._source = source
        self._data = os.path.join(folder, "data")
        self._partial = os.path.join(folder, "partial")
        self._folder = folder
        self._meter = meter
        self._stop = threading.Event()

    def all(self, found: Found) -> None:
        """Bring every file.

        Raises:
            Problem: one could not be brought; those that were stay for the next job.
        """
        check_names(found)
        os.makedirs(self._partial, exist_ok=True)
        journal = Journal(os.path.join(self._folder, "manifest"))
        try:
            missing = [entry for entry in found.entries if not self._is_there(entry, journal.known)]
            self._remove_others(found)
            self._require_room(missing)
            self._in_parallel(missing, journal)
        finally:
            journal.close()
        shutil.rmtree(self._partial, ignore_errors=True)
        replace(os.path.join(self._folder, "manifest"), "".join(line_of(each) + "\n" for each in sorted(found.entries)))

    def _is_there(self, entry: Entry, known: Set[str]) -> bool:
        path = self._target(entry)
        there = line_of(entry) in known and os.path.isfile(path) and entry.size in (-1, os.path.getsize(path))
        if there:
            self._meter.add(max(entry.size, 0))
        return there

    def _target(self, entry: Entry) -> str:
        return os.path.join(self._data, *entry.path.split("/")) if entry.path else self._data

    def _remove_others(self, found: Found) -> None:
        """What an earlier job brought of a state that is no more."""
        if found.kind == "file" or not os.path.isdir(self._data):
            if os.path.isdir(self._data) and not os.path.islink(self._data):
                shutil.rmtree(self._data)
            elif found.kind != "file" and os.path.lexists(self._data):
                os.unlink(self._data)
            return
        wanted = {self._target(entry) for entry in found.entries}
        for folder, _, names in os.walk(self._data, topdown=False):
            for name in names:
                if os.path.join(folder, name) not in wanted:
                    os.unlink(os.path.join(folder, name))
            if folder != self._data and not os.listdir(folder):
                os.rmdir(folder)

    def _require_room(self, missing: List[Entry]) -> None:
        needed = sum(entry.size for entry in missing if entry.size > 0)
        facts = os.statvfs(self._folder)
        free = facts.f_bavail * facts.f_frsize
        begun = sum(each.stat().st_size for each in os.scandir(self._partial))
        if needed - begun > free:
            raise Problem("space", "{} bytes are needed and {} has {} free".format(needed, self._folder, free))

    def _in_parallel(self, missing: List[Entry], journal: Journal) -> None:
        with concurrent.futures.ThreadPoolExecutor(AT_A_TIME) as pool:
            futures = [pool.submit(self._one, entry, journal) for entry in missing]
            first: Optional[BaseException] = None
            for future in concurrent.futures.as_completed(futures):
                error = None if future.cancelled() else future.exception()
                if error and first is None:
                    first = error
                    self._stop.set()
                    for each in futures:
                        each.cancel()
        if isinstance(first, OSError):
            raise of_system(first)
        if first is not None:
            raise first

    def _one(self, entry: Entry, journal: Journal) -> None:
        if self._stop.is_set():
            return
        mark = hashlib.sha256(line_of(entry).encode("utf-8", "surrogateescape")).hexdigest()[:32]
        part = os.path.join(self._partial, mark)
        tries = 0
        while True:
            before = _size(part)
            try:
                self._fetch(entry, part)
                break
            except Problem as problem:
                tries = 1 if _size(part) > before else tries + 1
                again = problem.kind in ("network", "damaged") and tries < TRIES
                if not again or self._stop.wait(PAUSE * 2 ** (tries - 1)):
                    raise
        target = self._target(entry)
        os.makedirs(os.path.dirname(target), exist_ok=True)
        os.replace(part, target)
        journal.add(entry)

    def _fetch(self, entry: Entry, part: str) -> None:
        """The file, going on after what is there of it; what turns out to be damaged is begun again."""
        digest = Digest(entry)
        offset = _read_again(part, digest) if os.path.exists(part) else 0
        if offset > entry.size >= 0:
            os.unlink(part)
            digest, offset = Digest(entry), 0
        counted = offset
        self._meter.add(offset)
        try:
            if offset != entry.size or not entry.size:
                with open(part, "ab") as file:
                    counted += self._copy(entry, offset, file, digest)
            if entry.size not in (-1, counted):
                raise Problem("network", "{}: {} of {} bytes came".format(entry.path or "it", counted, entry.size))
            if not digest.is_right():
                os.unlink(part)
                raise Problem(
                    "damaged", "{}: what came is not what {} stands for".format(entry.path or "it", entry.stamp)
                )
        except Problem:
            self._meter.add(-counted)
            raise

    def _copy(self, entry: Entry, offset: int, file: "IO[bytes]", digest: "Digest") -> int:
        reader = self._source.open(entry, offset)
        count = 0
        try:
            while True:
                if self._stop.is_set():
                    raise Problem("other", "stopped")
                piece = reader.read(_PIECE)
                if not piece:
                    return count
                file.write(piece)
                digest.update(piece)
                self._meter.add(len(piece))
                count += len(piece)
        finally:
            reader.close()


class Digest:
    """The checksum that an entry's stamp names; none where it can only be compared."""

    def __init__(self, entry: Entry) -> None:
        self._kind, _, self._wanted = entry.stamp.partition(":")
        makers: Dict[str, Callable[[], Any]] = {"md5": _md5, "sha256": hashlib.sha256, "git-sha1": hashlib.sha1}
        self._hash = makers[self._kind]() if self._kind in makers else None
        if self._kind == "git-sha1":
            self.update("blob {}\0".format(entry.size).encode())

    def update(self, piece: bytes) -> None:
        """These bytes come next."""
        if self._hash is not None:
            self._hash.update(piece)

    def is_right(self) -> bool:
        """Whether all of them are what the entry stands for."""
        return self._hash is None or self._hash.hexdigest() == self._wanted


def _md5() -> Any:
    """MD5 is what stores name objects by; where a system forbids it, size and ETag must do."""
    try:
        return hashlib.md5()  # noqa: S324
    except ValueError:
        return None


def _size(path: str) -> int:
    try:
        return os.path.getsize(path)
    except OSError:
        return 0


def _read_again(part: str, digest: Digest) -> int:
    """What an earlier job left, as a file of this one's own: a node that was cut off may still write to the old one."""
    own = "{}.{}".format(part, os.getpid())
    count = 0
    with open(part, "rb") as old, open(own, "wb") as new:
        while True:
            piece = old.read(_PIECE)
            if not piece:
                break
            new.write(piece)
            digest.update(piece)
            count += len(piece)
    os.replace(own, part)
    return count
