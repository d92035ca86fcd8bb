"""A daemon on a lab host: how it is started, when it counts as up, how it ends."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from towline.lab import namespaces, process
from towline.lab.accounts import system_user
from towline.lab.errors import LabError
from towline.lab.layout import Host, Layout

_PATIENCE = 30.0
"""Seconds until a start counts as failed."""
_EXEC_SECONDS = 1.0
"""For so long after a launch the process may not have its name yet."""


@dataclass(frozen=True)
class Daemon:
    """One long-running program on a host."""

    program: str
    """The kernel's short name of the process."""
    host: Host
    argv: Callable[[Layout], list[str]]
    log: str
    """Name of its log file in log/."""
    is_ready: Callable[[Layout], bool]
    """Whether it answers; asked again and again while it starts."""
    user: str = "root"
    detaches: bool = True
    """Whether the program goes to the background by itself and says by its exit code whether it could start."""
    own_files: bool = True
    """Whether it sees the host's files; else those of this machine, where the project's own Python may be."""

    def pids(self, layout: Layout) -> list[int]:
        """Its processes, oldest first."""
        return namespaces.find(layout, self.host, self.program)

    def check(self, layout: Layout) -> str:
        """What is wrong; empty when it runs and answers."""
        if not self.pids(layout):
            return f"{self.program} on {self.host.name} is not running"
        return "" if self.is_ready(layout) else f"{self.program} on {self.host.name} does not answer"

    def start(self, layout: Layout) -> None:
        """Start it, in place of one that no longer answers, and wait until it does.

        Raises:
            LabError: it ended or did not answer in time; the end of its log is in the message.
        """
        self.launch(layout)
        self.await_ready(layout)

    def launch(self, layout: Layout) -> None:
        """Start it without waiting, in place of one that no longer answers."""
        process.kill(self.pids(layout))
        argv, log = self.argv(layout), layout.log / self.log
        _make_log(log, self.user)
        if not self.detaches:
            namespaces.spawn(layout, self.host, argv, log=log, user=self.user, own_files=self.own_files)
        elif (status := namespaces.run_logged(layout, self.host, argv, log=log, user=self.user)) != 0:
            raise self._failure(layout, f"it ended with {status}.")

    def await_ready(self, layout: Layout) -> None:
        """Wait until it answers. Raises as `start` does."""
        gone_after = time.monotonic() + _EXEC_SECONDS
        try:
            process.until(lambda: self._settled(layout, gone_after), _PATIENCE, "its first answer")
        except LabError as error:
            raise self._failure(layout, error.what) from error
        if not self.pids(layout):
            raise self._failure(layout, "it ended at once.")

    def stop(self, layout: Layout) -> None:
        """Ask it to end, and make it end when it does not within 10 s."""
        pids = self.pids(layout)
        with contextlib.suppress(LabError):
            process.kill(pids[:1], how=signal.SIGTERM)
        process.kill(self.pids(layout))

    def _settled(self, layout: Layout, gone_after: float) -> bool:
        gone = time.monotonic() > gone_after and not self.pids(layout)
        return gone or self.is_ready(layout)

    def _failure(self, layout: Layout, why: str) -> LabError:
        end = process.tail(layout.log / self.log)
        return LabError(f"{self.program} on {self.host.name} did not start: {why}", why=end)


def answers(address: str, port: int, greeting: bytes = b"") -> bool:
    """Whether something accepts a connection there and, when asked for, begins with that greeting."""
    try:
        with socket.create_connection((address, port), timeout=2) as connection:
            return not greeting or connection.recv(len(greeting)) == greeting
    except OSError:
        return False


def answers_on(path: str) -> bool:
    """Whether something accepts a connection on a Unix socket."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(2)
        try:
            connection.connect(path)
        except OSError:
            return False
        return True


def _make_log(log: Path, user: str) -> None:
    log.touch(mode=0o644)
    os.chown(log, *system_user(user))
