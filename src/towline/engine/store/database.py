"""The file behind the local store: opening it wherever it lies, and transactions on it.

SQLite in the state directory. On a network file system every host has a file of its own and no write-ahead
log, for SQLite's shared memory does not work there (sqlite.org/wal.html).
"""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import sqlite3
import tempfile
from collections.abc import Generator
from pathlib import Path

from towline.engine.store.migrations import migrate
from towline.models.errors import ConfigError

BUSY_SECONDS = 20.0
"""How long one process waits for another one's write."""

_NETWORK = ("nfs", "nfs4", "lustre", "gpfs", "beegfs", "cifs", "smb3", "ceph", "fuse.sshfs", "9p", "afs")


class Database:
    """The file of this user's state. Objects are for one thread; processes may share the file.

    Args:
        directory: the state directory; made with mode 0700 when missing.

    Attributes:
        directory: the state directory.
        path: the file.
        notes: that the file cannot be written, if so. Then this object has a copy of it, which is enough for looking.

    Raises:
        ConfigError: the directory or the file in it cannot be used.
    """

    notes: tuple[str, ...] = ()

    def __init__(self, directory: Path) -> None:
        self._borrowed: tempfile.TemporaryDirectory[str] | None = None
        self._writes = 0
        try:
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._network = _is_network(directory)
            self.directory = directory
            self.path = directory / (f"store-{socket.gethostname()}.db" if self._network else "store.db")
            self._db = self._open()
        except (OSError, sqlite3.Error) as error:
            raise ConfigError(
                f"the local store in {directory} cannot be used",
                why=str(error),
                fix="Make it writable and free some space, or choose another place with TOWLINE_STATE_DIR; "
                "the jobs themselves are on the cluster.",
            ) from error

    def _open(self) -> sqlite3.Connection:
        try:
            return self._open_file(self.path)
        except (OSError, sqlite3.OperationalError) as error:
            if not self.path.is_file():
                raise
            self.notes = (f"{self.path} cannot be written ({error}); what is learnt now is not kept",)
            return self._open_file(self._copied())

    def _copied(self) -> Path:
        """A copy of the file, with what is not in it yet (sqlite.org/wal.html), where it can be written."""
        self._borrowed = tempfile.TemporaryDirectory(prefix="towline-")
        for name in (self.path.name, f"{self.path.name}-wal"):
            if (source := self.path.with_name(name)).is_file():
                shutil.copyfile(source, Path(self._borrowed.name, name))
        return Path(self._borrowed.name, self.path.name)

    def _open_file(self, path: Path) -> sqlite3.Connection:
        handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        os.close(handle)
        db = sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None)
        db.row_factory = sqlite3.Row
        db.execute("PRAGMA foreign_keys = ON")
        if not self._network:
            db.execute("PRAGMA journal_mode = WAL")
        db.execute("PRAGMA synchronous = FULL")
        migrate(db)
        return db

    def close(self) -> None:
        """Close the file."""
        self._db.close()
        if self._borrowed:
            self._borrowed.cleanup()

    @contextlib.contextmanager
    def writing(self) -> Generator[sqlite3.Connection, None, None]:
        """One transaction that writes.

        Raises:
            ConfigError: the file cannot be written.
        """
        self._writes += 1
        try:
            self._db.execute("BEGIN IMMEDIATE")
            yield self._db
            self._db.execute("COMMIT")
        except BaseException as error:
            with contextlib.suppress(sqlite3.OperationalError):  # a full disk has rolled it back already
                self._db.execute("ROLLBACK")
            if isinstance(error, sqlite3.OperationalError):
                raise self._unwritable(str(error)) from error
            raise

    @contextlib.contextmanager
    def reading(self) -> Generator[sqlite3.Connection, None, None]:
        """One transaction that reads: what is seen in it is of one moment."""
        self._db.execute("BEGIN")
        try:
            yield self._db
        finally:
            self._db.execute("COMMIT")

    def must_keep(self) -> None:
        """Refuse what would be lost with a copy.

        Raises:
            ConfigError: the file cannot be written.
        """
        if self._borrowed:
            raise self._unwritable("\n".join(self.notes))

    def version(self) -> tuple[int, int]:
        """Something that is different whenever this or another process has written; costs next to nothing."""
        return self._writes, int(self._db.execute("PRAGMA data_version").fetchone()[0])

    def _unwritable(self, why: str) -> ConfigError:
        return ConfigError(
            f"the local store {self.path} cannot be written",
            why=why,
            fix="Free the disk or choose another place with TOWLINE_STATE_DIR.",
        )


def _is_network(directory: Path) -> bool:
    """Whether the directory lies on a network file system, by the longest mount point above it."""
    try:
        lines = Path("/proc/self/mounts").read_text(errors="replace").splitlines()
    except OSError:
        return False
    where = str(directory.resolve())
    mounts = [line.split(" ")[1:3] for line in lines if line.count(" ") >= 3]
    above = [(len(point), kind) for point, kind in mounts if (where + "/").startswith(point.rstrip("/") + "/")]
    return max(above, default=(0, ""))[1] in _NETWORK
