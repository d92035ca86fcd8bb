"""The notices that are on their way, in the store: each to each channel once, whichever processes run and die.

A channel has a mark: the number of the last event that was made into notices for it, or was there before it. The mark
moves in the transaction that writes the notices, so no event is passed over or taken twice. A notice is claimed before
it is handed to apprise. A claim runs out when its process died in between: then nobody knows whether the message went
out, and it goes out once more and says so. Every other end of a claim is known.
"""

from __future__ import annotations

import hashlib
import sqlite3
import time
from collections.abc import Sequence
from dataclasses import dataclass

from towline.engine.notifying.messages import notice_of
from towline.engine.store import Store, history
from towline.models.notice import Notice, Occasion, Tone

CLAIM_SECONDS = 180.0
"""How long a claim lasts; a message is given up by apprise long before."""
FIRST_PAUSE, LONGEST_PAUSE, GIVE_UP = 5.0, 600.0, 3 * 86400.0
"""Seconds until a message that could not be sent is tried again, at first and at most, and until it is given up."""
_KEPT = 30 * 86400.0
_TOGETHER = 100
AGAIN = "It may have been told before: the process that sent it died meanwhile."


@dataclass(frozen=True)
class Channel:
    """Where notices of one cluster go.

    Attributes:
        cluster: name of the cluster profile.
        url: apprise's URL; it may hold a password, so the store has only what `name` says.
        occasions: what is told there.
    """

    cluster: str
    url: str
    occasions: frozenset[Occasion]

    @property
    def name(self) -> str:
        """The channel in the store."""
        scheme, digest = self.url.partition(":")[0], hashlib.sha256(self.url.encode()).hexdigest()
        return f"{scheme[:20]}-{digest[:16]}"


@dataclass(frozen=True)
class Waiting:
    """A notice that this process has claimed.

    Attributes:
        event: the number of its event.
        title, body, tone: see `Notice`.
        tries: how often it was claimed before.
        again: whether it may have gone out before.
    """

    event: int
    title: str
    body: str
    tone: Tone
    tries: int = 0
    again: bool = False


def open_channels(store: Store, channels: Sequence[Channel]) -> None:
    """Begin to keep events for channels that are new; what happened before is not told there.

    Raises:
        ConfigError: the store cannot be written.
    """
    with store.reading() as db:
        rows = db.execute("SELECT cluster, channel FROM channels").fetchall()
    known = {(row["cluster"], row["channel"]) for row in rows}
    if new := [each for each in channels if (each.cluster, each.name) not in known]:
        with store.writing() as db:
            for each in new:
                db.execute(
                    "INSERT OR IGNORE INTO channels (cluster, channel, told) VALUES (?, ?, ?)",
                    (each.cluster, each.name, history.newest(db)),
                )


def has_work(store: Store, channels: Sequence[Channel]) -> bool:
    """Whether there are events that were not looked at, or notices that can be sent now; costs next to nothing."""
    now = time.time()
    with store.reading() as db:
        return any(_has_events(db, each) or _next_due(db, each) <= now for each in channels)


def next_due(store: Store, channels: Sequence[Channel]) -> float:
    """When the next notice can be sent, in seconds since 1970; infinite when there is none."""
    with store.reading() as db:
        return min((_next_due(db, each) for each in channels), default=float("inf"))


def _has_events(db: sqlite3.Connection, channel: Channel) -> bool:
    found = db.execute(
        "SELECT EXISTS (SELECT 1 FROM events JOIN channels ON events.cluster = channels.cluster "
        "WHERE events.number > channels.told AND channels.cluster = ? AND channels.channel = ?) AS found",
        (channel.cluster, channel.name),
    ).fetchone()
    return bool(found["found"])


def _next_due(db: sqlite3.Connection, channel: Channel) -> float:
    """When the first of those that wait can go; the others wait for it."""
    row = db.execute(
        "SELECT due FROM notices WHERE cluster = ? AND channel = ? AND state IN ('waiting', 'sending') "
        "ORDER BY event LIMIT 1",
        (channel.cluster, channel.name),
    ).fetchone()
    return float("inf") if row is None else float(row["due"])


def standing(store: Store, channel: Channel) -> tuple[int, str]:
    """How many notices wait for a channel, and why the last that was tried could not be sent."""
    with store.reading() as db:
        row = db.execute(
            "SELECT coalesce(sum(state IN ('waiting', 'sending')), 0) AS waiting, "
            "coalesce((SELECT error FROM notices WHERE cluster = :cluster AND channel = :channel AND tries > 0 "
            "ORDER BY event DESC LIMIT 1), '') AS error FROM notices WHERE cluster = :cluster AND channel = :channel",
            {"cluster": channel.cluster, "channel": channel.name},
        ).fetchone()
    return int(row["waiting"]), str(row["error"])


def collect(store: Store, channel: Channel) -> None:
    """Make notices of the events that are new for a channel."""
    with store.reading() as db:
        if not _has_events(db, channel):
            return
    with store.writing() as db:
        row = db.execute(
            "SELECT told FROM channels WHERE cluster = ? AND channel = ?", (channel.cluster, channel.name)
        ).fetchone()
        if row is None:
            return
        events = history.read(db, channel.cluster, int(row["told"]), None, 1000)
        for event in events:
            notice = notice_of(event)
            if notice and notice.occasions & channel.occasions:
                _write(db, channel, event.number, event.job_id, notice)
        if events:
            db.execute(
                "UPDATE channels SET told = ? WHERE cluster = ? AND channel = ?",
                (events[-1].number, channel.cluster, channel.name),
            )
        db.execute("DELETE FROM notices WHERE made < ?", (time.time() - _KEPT,))


def _write(db: sqlite3.Connection, channel: Channel, event: int, job: str, notice: Notice) -> None:
    now = time.time()
    db.execute(
        "INSERT OR IGNORE INTO notices (cluster, channel, event, job, title, body, tone, made, due) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (channel.cluster, channel.name, event, job, notice.title, notice.body, notice.tone, now, now),
    )


def claim(store: Store, channel: Channel) -> tuple[Waiting, ...]:
    """What this process is to send to a channel now, as one message; nothing while an earlier one has to wait."""
    now = time.time()
    with store.writing() as db:
        rows = db.execute(
            "SELECT * FROM notices WHERE cluster = ? AND channel = ? AND state IN ('waiting', 'sending') "
            "ORDER BY event LIMIT ?",
            (channel.cluster, channel.name, _TOGETHER),
        ).fetchall()
        if not rows or rows[0]["due"] > now:
            return ()
        # What may have gone out before goes alone, so that only that is told twice.
        mine = [rows[0]] if rows[0]["state"] == "sending" else [row for row in rows if row["state"] == "waiting"]
        for row in mine:
            db.execute(
                "UPDATE notices SET state = 'sending', tries = tries + 1, due = ? "
                "WHERE cluster = ? AND channel = ? AND event = ?",
                (now + CLAIM_SECONDS, channel.cluster, channel.name, row["event"]),
            )
    return tuple(
        Waiting(row["event"], row["title"], row["body"], row["tone"], row["tries"], row["state"] == "sending")
        for row in mine
    )


def settle(store: Store, channel: Channel, claimed: Sequence[Waiting], error: str) -> None:
    """Write down how a claim ended; one that failed waits, or is given up when it is old.

    Args:
        store: the store.
        channel: where it was to go.
        claimed: from `claim`.
        error: why it could not be sent; empty when it was.
    """
    now = time.time()
    with store.writing() as db:
        for each in claimed:
            pause = min(LONGEST_PAUSE, FIRST_PAUSE * 2.0 ** min(each.tries, 20))
            state = "CASE WHEN made < ? THEN 'given-up' ELSE 'waiting' END" if error else "'sent'"
            values = (now - GIVE_UP,) if error else ()
            db.execute(
                f"UPDATE notices SET state = {state}, due = ?, error = ? "  # noqa: S608  one of two texts
                "WHERE cluster = ? AND channel = ? AND event = ?",
                (*values, now + pause, error, channel.cluster, channel.name, each.event),
            )
