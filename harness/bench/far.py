"""A login host far away: a private sshd behind a relay that delays, reached by Towline and by plain ssh."""

from __future__ import annotations

import asyncio
import subprocess
import tempfile
from collections.abc import Coroutine, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from harness.delay import delayed
from tests.lab.sshd import HOST, Server, kill
from towline.remote.ssh.openssh import OpenSSH

ONE_WAY = 0.025
"""Seconds; 50 ms round trip."""

T = TypeVar("T")


class Far:
    """The two ways to the host.

    Attributes:
        client: Towline's.
        folder: a private directory; the host sees the same files.
    """

    def __init__(self, server: Server, port: int) -> None:
        self.folder = server.folder
        self.client = OpenSSH((HOST,), server.access(port=port), control_dir=server.folder / "s")
        self._loop = asyncio.new_event_loop()
        options = (*server.access(port=port).options(), "-o", "StrictHostKeyChecking=accept-new")
        self._ssh = ("ssh", *options, "-o", f"ControlPath={server.folder}/plain")
        self._control("-M", "-N", "-f", HOST)

    def run(self, call: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine in the one event loop of the client."""
        return self._loop.run_until_complete(call)

    @property
    def command(self) -> tuple[str, ...]:
        """Plain ssh to the host over a connection of its own that is open already."""
        return (*self._ssh, "-o", "ControlMaster=no", HOST)

    def ssh(self, line: str) -> None:
        """Run a command line with plain ssh."""
        subprocess.run((*self.command, line), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, check=True)

    def close(self) -> None:
        """End both."""
        self.run(self.client.close())
        self.run(self.client.disconnect())
        self._loop.close()
        self._control("-O", "exit", HOST)

    def _control(self, *arguments: str) -> None:
        subprocess.run((*self._ssh, *arguments), stderr=subprocess.DEVNULL, check=True)


@contextmanager
def far_host(one_way: float = ONE_WAY) -> Generator[Far]:
    """A login host of one's own, so many seconds away."""
    with tempfile.TemporaryDirectory(prefix="tl") as name:
        server = Server(Path(name))
        server.start()
        try:
            with delayed(server.port, one_way) as port:
                far = Far(server, port)
                try:
                    yield far
                finally:
                    far.close()
        finally:
            for pid in server.master_pids():
                kill(pid)
            server.stop()
