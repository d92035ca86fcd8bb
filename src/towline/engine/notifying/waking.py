"""A command's or a service's part in notices: it sees to it that a process is there which sends them, and goes on."""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Sequence

from towline.engine.notifying import outbox
from towline.engine.notifying.channels import channels_of
from towline.engine.notifying.outbox import Channel
from towline.engine.notifying.sending import lock_of
from towline.engine.session import Session
from towline.engine.store import Store
from towline.models.errors import ConfigError
from towline.remote import background
from towline.remote.locks import try_lock


def watched_by_people(session: Session) -> tuple[str, ...]:
    """Have the session's events told as its profile says; the result is why that cannot be, in sentences."""
    try:
        channels = channels_of(session.profile, os.environ)
    except ConfigError as error:
        return (f"{error.what}: {error.why} {error.fix}",)
    Waker(session.store, channels)
    return ()


class Waker:
    """Starts the sending process when there is something to send and it does not run.

    Args:
        store: the store whose events are told.
        channels: where to; none for nobody to tell.
    """

    def __init__(self, store: Store, channels: Sequence[Channel]) -> None:
        self._store = store
        self._channels = tuple(channels)
        if not channels:
            return
        with contextlib.suppress(ConfigError):  # a store that cannot be written has no new events
            outbox.open_channels(store, channels)
        store.on_change = self.wake
        self.wake()

    def wake(self) -> None:
        """Look whether something is to be sent; takes milliseconds at most, and never fails."""
        with contextlib.suppress(OSError):
            if not outbox.has_work(self._store, self._channels):
                return
            lock = lock_of(self._store.directory)
            try:
                # The new process inherits the lock, so there is no moment in which nobody would start a second one.
                if try_lock(lock):
                    background.start(
                        [sys.executable, "-m", "towline.engine.notifying.sending"], self._task(lock), keep=lock
                    )
            finally:
                os.close(lock)

    def _task(self, lock: int) -> str:
        channels = [
            {"cluster": each.cluster, "url": each.url, "occasions": sorted(each.occasions)} for each in self._channels
        ]
        return json.dumps({"directory": os.path.abspath(self._store.directory), "channels": channels, "lock": lock})
