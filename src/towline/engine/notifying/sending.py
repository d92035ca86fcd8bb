"""The process that sends notices: one at a time for each store, apart from every command, so that nobody waits for it.

`python -m towline.engine.notifying.sending` reads what it needs from stdin, for URLs may hold passwords: the state
directory and the channels, as JSON.
"""

from __future__ import annotations

import json
import logging
import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol, cast

from towline.engine.notifying import outbox
from towline.engine.notifying.messages import together
from towline.engine.notifying.outbox import Channel
from towline.engine.redaction import redacted
from towline.engine.store import Store
from towline.models.notice import Tone
from towline.remote.locks import try_lock

PATIENCE = 900.0
"""Seconds that a process goes on while a channel does not answer; some later command starts another."""
_TONES: tuple[Tone, ...] = ("failure", "warning", "success", "info")

Send = Callable[[str, str, str, Tone], str]
"""Sends to a URL a title and a text in a tone; the result is why that failed, empty when it did not."""


def by_apprise(url: str, title: str, body: str, tone: Tone) -> str:
    """Send one message; see `Send`."""
    import apprise

    target, words = cast("_Apprise", apprise.Apprise()), _Words(logging.WARNING)
    logging.getLogger("apprise").addHandler(words)
    try:
        if not target.add(url):
            return "apprise does not know such a URL"
        done = target.notify(body=body, title=title, notify_type=tone)
    finally:
        logging.getLogger("apprise").removeHandler(words)
    return "" if done else redacted((words.heard or ["it was not taken"])[-1].replace(url, "the URL"))


class _Apprise(Protocol):
    def add(self, services: str) -> bool: ...
    def notify(self, *, body: str, title: str, notify_type: str) -> object: ...


class _Words(logging.Handler):
    """What apprise says of a failure."""

    def __init__(self, level: int) -> None:
        super().__init__(level)
        self.heard: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Take a line."""
        self.heard.append(record.getMessage())


class Sender:
    """Sends what waits for the channels.

    Args:
        store: the store.
        channels: where to.
        send: sends one message.
    """

    def __init__(self, store: Store, channels: Sequence[Channel], send: Send = by_apprise) -> None:
        self._store = store
        self._channels = channels
        self._send = send

    def once(self) -> None:
        """Send all that can be sent now."""
        for channel in self._channels:
            outbox.collect(self._store, channel)
            while claimed := outbox.claim(self._store, channel):
                if self._one(channel, claimed):
                    break

    def _one(self, channel: Channel, claimed: Sequence[outbox.Waiting]) -> str:
        bodies = [f"{each.body}\n{outbox.AGAIN}" if each.again else each.body for each in claimed]
        title, body = together([each.title for each in claimed], bodies)
        tone: Tone = next(tone for tone in _TONES if any(each.tone == tone for each in claimed))
        try:
            error = self._send(channel.url, title, body, tone)
        except Exception as failed:  # whatever a plugin of apprise does
            error = f"{type(failed).__name__}: {failed}"
        outbox.settle(self._store, channel, claimed, error)
        return error

    def until_empty(self, until: float) -> None:
        """Send until nothing waits, or nothing can be sent before that time on the monotonic clock."""
        while True:
            self.once()
            due = outbox.next_due(self._store, self._channels)
            pause = max(0.0, due - time.time())
            if due == float("inf") or time.monotonic() + pause > until:
                return
            time.sleep(min(pause, 1.0))  # events may come meanwhile


def lock_of(directory: Path) -> int:
    """A descriptor of the file that the sending process of a state directory holds locked."""
    return os.open(directory / "notify.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)


def main(text: str) -> None:
    """Send what waits, with the lock that whoever started this has taken."""
    given = json.loads(text)
    channels = [Channel(each["cluster"], each["url"], frozenset(each["occasions"])) for each in given["channels"]]
    directory, lock = Path(given["directory"]), int(given["lock"])
    store, until = Store(directory), time.monotonic() + PATIENCE
    # Whoever writes an event looks for the lock after that, and this process looks for events after it has let go of
    # the lock: one of both sees the other.
    while True:
        try:
            Sender(store, channels).until_empty(until)
        finally:
            os.close(lock)
        if time.monotonic() > until or not outbox.has_work(store, channels):
            return
        lock = lock_of(directory)
        if not try_lock(lock):
            return


if __name__ == "__main__":
    main(Path("/dev/stdin").read_text(encoding="utf-8"))
