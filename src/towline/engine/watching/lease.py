"""Who asks the scheduler: one process for each cluster, whose word is in the store; the others read what it writes.

The process that asks holds a lock, which it loses with its life, so that another one takes over at its next look.
Where the file system has no locks, and for a process that hangs, the lease runs out.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import time
import uuid
from dataclasses import dataclass

from towline.engine.session import CALL_SECONDS
from towline.engine.store import Store
from towline.models.errors import ConfigError
from towline.remote.locks import try_lock

LEASE_SECONDS = 30.0
"""How long the lease lasts after its last renewal."""


@dataclass(frozen=True)
class Turn:
    """What the store says of the asking; times are seconds since 1970 on this machine's clock.

    Attributes:
        owner: the process that asks; empty for none.
        until: when its lease runs out.
        begun: when the last look began.
        polled: when the last look that was answered ended.
        wanted: by when somebody wants another look; None for nobody.
    """

    owner: str = ""
    until: float = 0.0
    begun: float = 0.0
    polled: float = 0.0
    wanted: float | None = None


class Lease:
    """One process's part in asking one cluster's scheduler.

    Args:
        store: the store that the processes share.
        cluster: name of the cluster profile.
    """

    def __init__(self, store: Store, cluster: str) -> None:
        self._store = store
        self._cluster = cluster
        self._owner = uuid.uuid4().hex
        self._lock: int | None = None
        self._until = 0.0

    def take(self) -> bool:
        """Whether this process asks now; it goes on with that, or takes it over from one that is gone."""
        now = time.time()
        if self._until - now > LEASE_SECONDS / 2:
            return True
        turn = self.turn()
        foreign = turn.owner not in ("", self._owner)
        if foreign and turn.until > now and not self._locked():
            return False
        self._locked()
        with self._store.writing() as db:
            turn = _read(db, self._cluster)
            if turn.owner not in ("", self._owner) and turn.until > now and self._lock is None:
                return False  # another one was quicker, where there are no locks
            self._until = now + LEASE_SECONDS
            _write(db, self._cluster, owner=self._owner, until=self._until)
        return True

    def begin(self) -> float:
        """A look begins; the result is its time. What was wanted by now is answered by it."""
        now = time.time()
        self._until = now + CALL_SECONDS + LEASE_SECONDS
        with self._store.writing() as db:
            _write(db, self._cluster, owner=self._owner, until=self._until, begun=now, wanted=None)
        return now

    def answered(self) -> None:
        """The look was answered, and what it has shown is in the store."""
        now = time.time()
        self._until = now + LEASE_SECONDS
        with self._store.writing() as db:
            _write(db, self._cluster, until=self._until, polled=now)

    def want(self, by: float) -> None:
        """Ask whoever has the lease for a look at that time at the latest."""
        with self._store.writing() as db:
            wanted = _read(db, self._cluster).wanted
            if wanted is None or by < wanted:
                _write(db, self._cluster, wanted=by)

    def turn(self) -> Turn:
        """What the store says now."""
        with self._store.reading() as db:
            return _read(db, self._cluster)

    def release(self) -> None:
        """Leave the asking to others."""
        if self._until:
            with contextlib.suppress(ConfigError), self._store.writing() as db:
                if _read(db, self._cluster).owner == self._owner:
                    _write(db, self._cluster, owner="", until=0.0)
        self._until = 0.0
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def _locked(self) -> bool:
        """Whether this process has the lock now."""
        if self._lock is not None:
            return True
        path = self._store.directory / f"asking-{self._cluster}.lock"
        with contextlib.suppress(OSError):
            handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            with contextlib.suppress(OSError):
                if try_lock(handle):
                    self._lock = handle
                    return True
            os.close(handle)
        return False


def _read(db: sqlite3.Connection, cluster: str) -> Turn:
    row = db.execute("SELECT owner, until, begun, polled, wanted FROM leases WHERE cluster = ?", (cluster,)).fetchone()
    return Turn(**dict(row)) if row else Turn()


def _write(db: sqlite3.Connection, cluster: str, **values: str | float | None) -> None:
    db.execute("INSERT OR IGNORE INTO leases (cluster) VALUES (?)", (cluster,))
    columns = ", ".join(f"{name} = :{name}" for name in values)
    db.execute(f"UPDATE leases SET {columns} WHERE cluster = :cluster", {**values, "cluster": cluster})  # noqa: S608
