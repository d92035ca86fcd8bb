"""`JobStore`: what TAO's SDK keeps of jobs beside what the engine knows: their family, checkpoints, and hooks' calls.

A SQLite file with the columns that scripts for TAO's SDK know. Its default place is Towline's state directory; what
that SDK left in `$TAO_SDK_STATE_DIR` or `~/.tao_sdk` is taken over once, and its file stays as it is. Databases lying
about in the current directory are not looked at: nobody knows whose they are.
"""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
import threading
from collections.abc import Generator, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from towline.config.paths import state_dir
from towline.models.errors import ConfigError
from towline.tao.models import now
from towline.tao.words import TERMINAL

FILE = "tao_session_state.db"
BUSY_SECONDS = 20.0

_JOB_TEXTS = (
    *("job_id", "network_arch", "action", "workspace_id", "backend_type", "backend_job_id", "status", "parent_job_id"),
    *("image", "specs", "results_dir", "local_results_dir", "base_checkpoint", "created_at", "updated_at"),
)
_SCHEMA = f"""
CREATE TABLE IF NOT EXISTS jobs (
    {", ".join(f"{name} TEXT{' PRIMARY KEY' if name == 'job_id' else ''}" for name in _JOB_TEXTS)},
    last_epoch INTEGER DEFAULT 0
);
CREATE TABLE IF NOT EXISTS checkpoints (
    id INTEGER PRIMARY KEY, job_id TEXT NOT NULL, path TEXT NOT NULL, epoch INTEGER DEFAULT 0, format TEXT DEFAULT '',
    created_at TEXT
);
CREATE TABLE IF NOT EXISTS hooks (job_id TEXT, name TEXT, called_at TEXT, PRIMARY KEY (job_id, name));
CREATE TABLE IF NOT EXISTS taken_over (source TEXT PRIMARY KEY, at TEXT);
"""

Row = dict[str, Any]


def old_state() -> Path:
    """The file in which TAO's own SDK keeps its state for this user; it need not exist.

    Raises:
        ConfigError: TAO_SDK_STATE_DIR is no absolute path.
    """
    chosen = os.environ.get("TAO_SDK_STATE_DIR", "").strip()
    directory = Path(chosen).expanduser() if chosen else Path(os.path.expanduser("~")) / ".tao_sdk"
    if not directory.is_absolute():
        raise ConfigError("TAO_SDK_STATE_DIR must be an absolute path", why=f"It is {chosen!r}.")
    return directory / FILE


class JobStore:
    """Rows of jobs and their checkpoints. Safe for several threads and processes; every method is one transaction.

    Args:
        db_path: the file, or `:memory:`; the default one when not given.

    Raises:
        ConfigError: the file cannot be used.
    """

    def __init__(self, db_path: str | os.PathLike[str] | None = None) -> None:
        self._lock = threading.RLock()
        path = os.fspath(db_path) if db_path is not None else str(state_dir() / FILE)
        try:
            if path != ":memory:":
                os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
            self._db = sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False)
            self._db.row_factory = sqlite3.Row
            self._db.executescript(_SCHEMA)
        except (OSError, sqlite3.Error) as error:
            raise ConfigError(f"the file {path} with the state of TAO jobs cannot be used", why=str(error)) from None
        if db_path is None:
            self._take_over(old_state())

    def close(self) -> None:
        """Close the file; closing again does nothing."""
        with self._lock:
            self._db.close()

    def __enter__(self) -> JobStore:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @contextlib.contextmanager
    def _writing(self) -> Generator[sqlite3.Connection, None, None]:
        with self._lock:
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield self._db
            except BaseException:
                self._db.execute("ROLLBACK")
                raise
            self._db.execute("COMMIT")

    def _rows(self, query: str, values: Sequence[object] = ()) -> list[Row]:
        with self._lock:
            return [dict(row) for row in self._db.execute(query, values)]

    # --- Jobs ---

    def create_job(self, job_id: str, network_arch: str = "", action: str = "", **fields: Any) -> None:
        """Write a job down; one of that id that is there already is replaced, unless it has ended."""
        values = _values(job_id, network_arch, action, fields)
        with self._writing() as db:
            row = db.execute("SELECT status FROM jobs WHERE job_id = ?", (job_id,)).fetchone()
            if row is None or row["status"] not in TERMINAL:
                _put(db, "REPLACE", values)

    def create_job_if_absent(self, job_id: str, network_arch: str = "", action: str = "", **fields: Any) -> bool:
        """Write a job down unless one of that id is there; the result is whether it is new."""
        with self._writing() as db:
            return _put(db, "INSERT OR IGNORE", _values(job_id, network_arch, action, fields)) == 1

    def get_job(self, job_id: str) -> Row | None:
        """The job's row, `specs` as plain values; None for none."""
        found = self._rows("SELECT * FROM jobs WHERE job_id = ?", (job_id,))
        return _readable(found[0]) if found else None

    def list_jobs(
        self,
        status: str | None = None,
        network_arch: str | None = None,
        action: str | None = None,
        limit: int | None = None,
    ) -> list[Row]:
        """The jobs of which all this is true, newest first."""
        wanted = {"status": status, "network_arch": network_arch, "action": action}
        given = {name: value for name, value in wanted.items() if value is not None}
        where = f"WHERE {' AND '.join(f'{name} = ?' for name in given)}" if given else ""
        query = f"SELECT * FROM jobs {where} ORDER BY created_at DESC, job_id LIMIT ?"  # noqa: S608
        return [_readable(row) for row in self._rows(query, (*given.values(), -1 if limit is None else limit))]

    def update_job_status(self, job_id: str, status: str, last_epoch: int | None = None) -> bool:
        """Note the status; the word of an end never changes. The result is whether it is noted."""
        with self._writing() as db:
            row = db.execute("SELECT status FROM jobs WHERE job_id = ?", (job_id,)).fetchone()
            if row is None or (row["status"] in TERMINAL and row["status"] != status):
                return False
            values = (status, last_epoch or 0, now(), job_id)
            db.execute(
                "UPDATE jobs SET status = ?, last_epoch = max(last_epoch, ?), updated_at = ? WHERE job_id = ?", values
            )
            return True

    def compare_and_set_job_status(self, job_id: str, expected_statuses: Sequence[str], status: str) -> bool:
        """Note the status if it is one of the expected ones until now; the result is whether it was."""
        with self._writing() as db:
            row = db.execute("SELECT status FROM jobs WHERE job_id = ?", (job_id,)).fetchone()
            if row is None or row["status"] not in expected_statuses:
                return False
            db.execute("UPDATE jobs SET status = ?, updated_at = ? WHERE job_id = ?", (status, now(), job_id))
            return True

    def note_epoch(self, job_id: str, epoch: int) -> None:
        """Note the last epoch that was told as a milestone."""
        with self._writing() as db:
            db.execute("UPDATE jobs SET last_epoch = max(last_epoch, ?) WHERE job_id = ?", (epoch, job_id))

    def update_job_backend_id(self, job_id: str, backend_job_id: str, status: str | None = None) -> bool:
        """Note the name that Slurm knows the job by; the result is whether there is such a job."""
        with self._writing() as db:
            values = (backend_job_id, now(), job_id)
            cursor = db.execute("UPDATE jobs SET backend_job_id = ?, updated_at = ? WHERE job_id = ?", values)
            found = cursor.rowcount == 1
        return found and (status is None or self.update_job_status(job_id, status))

    def update_job_specs(self, job_id: str, specs: Mapping[str, Any]) -> bool:
        """Note the specs; the result is whether there is such a job."""
        with self._writing() as db:
            values = (json.dumps(dict(specs)), now(), job_id)
            return db.execute("UPDATE jobs SET specs = ?, updated_at = ? WHERE job_id = ?", values).rowcount == 1

    def get_parent_job(self, job_id: str) -> Row | None:
        """The job that this one goes on from; None for none."""
        job = self.get_job(job_id)
        return self.get_job(job["parent_job_id"]) if job and job["parent_job_id"] else None

    def get_parent_results_dir(self, job_id: str) -> str:
        """Where the results of that job are; empty for none."""
        parent = self.get_parent_job(job_id)
        return parent["results_dir"] if parent else ""

    # --- Checkpoints ---

    def add_checkpoint(self, job_id: str, path: str, epoch: int = 0, format: str = "safetensors") -> None:  # noqa: A002
        """Note a checkpoint."""
        with self._writing() as db:
            db.execute(
                "INSERT INTO checkpoints (job_id, path, epoch, format, created_at) VALUES (?, ?, ?, ?, ?)",
                (job_id, path, epoch, format, now()),
            )

    def get_checkpoints(self, job_id: str) -> list[Row]:
        """The noted checkpoints, by epoch."""
        return self._rows("SELECT * FROM checkpoints WHERE job_id = ? ORDER BY epoch, id", (job_id,))

    def get_latest_checkpoint(self, job_id: str) -> Row | None:
        """The noted checkpoint of the highest epoch; None for none."""
        found = self.get_checkpoints(job_id)
        return found[-1] if found else None

    def delete_checkpoints(self, job_id: str) -> None:
        """Forget the noted checkpoints."""
        with self._writing() as db:
            db.execute("DELETE FROM checkpoints WHERE job_id = ?", (job_id,))

    # --- Hooks ---

    def call_hook(self, job_id: str, name: str) -> bool:
        """Note that a hook is called now; the result is whether it was not before, in whichever process."""
        with self._writing() as db:
            values = (job_id, name, now())
            return db.execute("INSERT OR IGNORE INTO hooks VALUES (?, ?, ?)", values).rowcount == 1

    def was_called(self, job_id: str, name: str) -> bool:
        """Whether a hook of a job was called."""
        return bool(self._rows("SELECT 1 FROM hooks WHERE job_id = ? AND name = ?", (job_id, name)))

    # --- State of TAO's own SDK ---

    def import_from_state_file(self, state_file: str | os.PathLike[str]) -> int:
        """Take the jobs of a state file in JSON over; the result is how many are new.

        Raises:
            ConfigError: the file cannot be read.
        """
        try:
            found = json.loads(Path(state_file).read_text(encoding="utf-8"))
            rows = [dict(cast("Row", row)) for row in found["active_jobs"]]
            if not all(isinstance(row["job_id"], str) for row in rows):
                raise ValueError("a job's id is no text")
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise ConfigError(f"{state_file} is no state file of TAO's SDK", why=str(error)) from None
        return self._take(rows, ())

    def _take_over(self, source: Path) -> None:
        if self._rows("SELECT 1 FROM taken_over WHERE source = ?", (str(source),)) or not source.is_file():
            return
        try:
            with contextlib.closing(sqlite3.connect(f"{source.as_uri()}?mode=ro", uri=True)) as old:
                old.row_factory = sqlite3.Row
                jobs = [dict(row) for row in old.execute("SELECT * FROM jobs")]
                checkpoints = [dict(row) for row in old.execute("SELECT * FROM checkpoints")]
        except sqlite3.Error as error:
            raise ConfigError(
                f"the state of TAO's SDK in {source} cannot be read",
                why=str(error),
                fix="Move the file away if its jobs do not matter any more.",
            ) from None
        self._take(jobs, checkpoints)
        with self._writing() as db:
            db.execute("INSERT OR IGNORE INTO taken_over VALUES (?, ?)", (str(source), now()))

    def _take(self, jobs: Iterable[Row], checkpoints: Iterable[Row]) -> int:
        fresh: set[str] = set()
        with self._writing() as db:
            for row in jobs:
                known = {name: row[name] for name in (*_JOB_TEXTS, "last_epoch") if row.get(name) is not None}
                values = _values(known.pop("job_id"), known.pop("network_arch", ""), known.pop("action", ""), known)
                if _put(db, "INSERT OR IGNORE", values):
                    fresh.add(values["job_id"])
            for row in checkpoints:
                if row["job_id"] in fresh:
                    names = ("job_id", "path", "epoch", "format", "created_at")
                    db.execute(
                        "INSERT INTO checkpoints (job_id, path, epoch, format, created_at) VALUES (?, ?, ?, ?, ?)",
                        tuple(row[name] for name in names),
                    )
        return len(fresh)


def _values(job_id: str, network_arch: str, action: str, fields: Mapping[str, Any]) -> Row:
    known = {*_JOB_TEXTS, "last_epoch"}
    values: Row = {**dict.fromkeys(known, ""), "status": "Pending", "created_at": now(), "last_epoch": 0}
    values |= {name: value for name, value in fields.items() if name in known and value is not None}
    specs = values["specs"]
    if not isinstance(specs, str):
        values["specs"] = json.dumps(specs)
    return {**values, "job_id": job_id, "network_arch": network_arch, "action": action, "updated_at": now()}


def _put(db: sqlite3.Connection, verb: str, values: Row) -> int:
    names = ", ".join(values)
    marks = ", ".join(f":{name}" for name in values)
    return db.execute(f"{verb} INTO jobs ({names}) VALUES ({marks})", values).rowcount


def _readable(row: Row) -> Row:
    try:
        specs = json.loads(row["specs"] or "{}")
    except ValueError:
        specs = {}
    return {**row, "specs": specs}
