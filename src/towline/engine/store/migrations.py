"""The store's schema as numbered steps; a step that was released is never edited, only followed by another."""

from __future__ import annotations

import sqlite3

MIGRATIONS: tuple[str, ...] = (
    """
    CREATE TABLE jobs (
        id        TEXT PRIMARY KEY,
        name      TEXT NOT NULL,
        cluster   TEXT NOT NULL,
        state     TEXT NOT NULL,
        directory TEXT NOT NULL,
        created   REAL NOT NULL,
        note      TEXT NOT NULL DEFAULT '',
        command   TEXT NOT NULL DEFAULT '',
        spec      TEXT NOT NULL
    ) WITHOUT ROWID;
    CREATE INDEX jobs_by_name ON jobs (name);
    CREATE INDEX jobs_by_state ON jobs (cluster, state);
    CREATE TABLE attempts (
        job           TEXT NOT NULL REFERENCES jobs (id) ON DELETE CASCADE,
        number        INTEGER NOT NULL,
        slurm_id      TEXT NOT NULL DEFAULT '',
        slurm_cluster TEXT NOT NULL DEFAULT '',
        slurm_state   TEXT NOT NULL DEFAULT '',
        reason        TEXT NOT NULL DEFAULT '',
        nodes         TEXT NOT NULL DEFAULT '',
        submitted     INTEGER,
        started       INTEGER,
        ended         INTEGER,
        exit_code     INTEGER,
        exit_source   TEXT NOT NULL DEFAULT '',
        failed_rank   INTEGER,
        PRIMARY KEY (job, number)
    ) WITHOUT ROWID;
    CREATE INDEX attempts_by_slurm_id ON attempts (slurm_id);
    CREATE TABLE facts (
        cluster TEXT PRIMARY KEY,
        asked   REAL NOT NULL,
        body    TEXT NOT NULL
    ) WITHOUT ROWID;
    """,
    """
    ALTER TABLE jobs ADD COLUMN tasks TEXT NOT NULL DEFAULT '';
    ALTER TABLE attempts ADD COLUMN task INTEGER;
    """,
    """
    ALTER TABLE attempts ADD COLUMN components TEXT NOT NULL DEFAULT '';
    """,
    """
    ALTER TABLE jobs ADD COLUMN roles TEXT NOT NULL DEFAULT '';
    ALTER TABLE attempts ADD COLUMN failed_role TEXT NOT NULL DEFAULT '';
    """,
    """
    ALTER TABLE jobs ADD COLUMN seen REAL NOT NULL DEFAULT 0;
    ALTER TABLE jobs ADD COLUMN changed INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE jobs ADD COLUMN progress TEXT NOT NULL DEFAULT '';
    CREATE INDEX jobs_by_change ON jobs (changed);
    CREATE TABLE events (
        number  INTEGER PRIMARY KEY AUTOINCREMENT,
        time    REAL NOT NULL,
        cluster TEXT NOT NULL,
        job     TEXT NOT NULL,
        name    TEXT NOT NULL,
        kind    TEXT NOT NULL,
        state   TEXT NOT NULL,
        attempt INTEGER NOT NULL,
        note    TEXT NOT NULL DEFAULT '',
        details TEXT NOT NULL DEFAULT '{}',
        key     TEXT,
        UNIQUE (job, key)
    );
    CREATE TABLE leases (
        cluster TEXT PRIMARY KEY,
        owner   TEXT NOT NULL DEFAULT '',
        until   REAL NOT NULL DEFAULT 0,
        begun   REAL NOT NULL DEFAULT 0,
        polled  REAL NOT NULL DEFAULT 0,
        wanted  REAL
    ) WITHOUT ROWID;
    """,
    """
    ALTER TABLE attempts ADD COLUMN diagnosis TEXT NOT NULL DEFAULT '';
    """,
    """
    ALTER TABLE attempts ADD COLUMN cause TEXT NOT NULL DEFAULT '';
    ALTER TABLE attempts ADD COLUMN evidence TEXT NOT NULL DEFAULT '';
    ALTER TABLE attempts ADD COLUMN bad_nodes TEXT NOT NULL DEFAULT '';
    CREATE TABLE bad_nodes (
        cluster TEXT NOT NULL,
        node    TEXT NOT NULL,
        until   REAL NOT NULL,
        why     TEXT NOT NULL,
        PRIMARY KEY (cluster, node)
    ) WITHOUT ROWID;
    """,
    """
    CREATE TABLE channels (
        cluster TEXT NOT NULL,
        channel TEXT NOT NULL,
        told    INTEGER NOT NULL,
        PRIMARY KEY (cluster, channel)
    ) WITHOUT ROWID;
    CREATE TABLE notices (
        cluster TEXT NOT NULL,
        channel TEXT NOT NULL,
        event   INTEGER NOT NULL,
        job     TEXT NOT NULL,
        title   TEXT NOT NULL,
        body    TEXT NOT NULL,
        tone    TEXT NOT NULL,
        made    REAL NOT NULL,
        due     REAL NOT NULL,
        state   TEXT NOT NULL DEFAULT 'waiting',
        tries   INTEGER NOT NULL DEFAULT 0,
        error   TEXT NOT NULL DEFAULT '',
        PRIMARY KEY (cluster, channel, event)
    ) WITHOUT ROWID;
    """,
    """
    CREATE TABLE marks (mark INTEGER NOT NULL);
    INSERT INTO marks SELECT coalesce(max(changed), 0) FROM jobs;
    DROP INDEX jobs_by_state;
    CREATE INDEX jobs_by_state ON jobs (cluster, state, changed);
    """,
)


def migrate(db: sqlite3.Connection) -> None:
    """Bring the store to the newest step.

    Raises:
        sqlite3.DatabaseError: it was written by a newer version.
    """
    version = db.execute("PRAGMA user_version").fetchone()[0]
    if version > len(MIGRATIONS):
        raise sqlite3.DatabaseError("the store was written by a newer version of Towline; update this one")
    if version == len(MIGRATIONS):
        return
    db.execute("BEGIN EXCLUSIVE")
    try:
        version = db.execute("PRAGMA user_version").fetchone()[0]
        for step in MIGRATIONS[version:]:
            for statement in filter(str.strip, step.split(";")):
                db.execute(statement)
        db.execute(f"PRAGMA user_version = {len(MIGRATIONS)}")
    except BaseException:
        db.execute("ROLLBACK")
        raise
    db.execute("COMMIT")
