"""The connection to one login host that all calls share: an OpenSSH master, the user's own or one of ours.

Ours is started explicitly, stays for some minutes after its last use, and is found by the next process. One task of
one process opens it at a time.
"""

from __future__ import annotations

import asyncio
import random
import signal
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from towline.models.errors import ConfigError
from towline.remote.ssh.access import Access, connection_name, parse_config, quoted
from towline.remote.ssh.diagnosis import Failure, Kind, LoginTarget, diagnose, last_line
from towline.remote.ssh.sockets import control_directory, locked
from towline.remote.wire.framing import mark

_ANSWER = 5.0
"""Seconds for a question to a local ssh or master; one that takes longer hangs."""
_LOGIN = 3
"""A whole login may take this many times the connect time-out."""
_PAUSES = (0.5, 1.0, 2.0)
"""Seconds between tries when the server drops connections before the login."""
_PLAIN = ("-T", "-x", "-o", "ClearAllForwardings=yes", "-o", "RemoteCommand=none", "-o", "PermitLocalCommand=no")


class LoginFailed(Exception):
    """No connection to this host, though another host or a later try may work."""


@dataclass(frozen=True)
class _Reply:
    status: int | None
    stdout: str
    words: str


class Master:
    """The shared connection to one host.

    Args:
        host: the name for ssh.
        access: how to get there.
        directory: where our socket lives; see `control_directory`.
        linger: seconds that our master stays after its last use; 0 ends it at `close`.

    Attributes:
        opened: how many logins this object made.
    """

    def __init__(self, host: str, access: Access, directory: Path | None, linger: int) -> None:
        self.host = host
        self.opened = 0
        self._access = access
        self._directory = directory
        self._linger = linger
        self._lock = asyncio.Lock()
        self._tries = 0
        self._generation = 0
        self._lost = 0
        self._failure: Exception | None = None
        self._config: dict[str, tuple[str, ...]] = {}
        self._path: Path | None = None
        self._ours = False

    async def ready(self) -> int:
        """Have a connection, opening one if there is none; returns its number for `lost`.

        Raises:
            LoginFailed: this host could not be reached.
            AccessRefused, ConfigError: trying again would not help.
        """
        tries = self._tries
        if self._generation > self._lost:
            return self._generation
        async with self._lock:
            if self._generation <= self._lost:
                await self._connect_once(first=self._tries == tries)
            return self._generation

    def lost(self, generation: int) -> None:
        """The connection of that number is of no use any more."""
        self._lost = max(self._lost, generation)

    def command(self, nonce: str, line: str, *, terminal: bool = False) -> tuple[str, ...]:
        """The ssh command that runs the line over the connection, and never logs in on its own.

        With `terminal` the line gets one, whatever this process has.
        Without a connection to share ssh goes on to its ProxyCommand, which only says so with the call's nonce.
        """
        say = f"ProxyCommand=/bin/sh -c 'echo {mark(nonce, 'unattached').decode()} >&2'"
        attach = ("-o", "ControlMaster=no", "-o", f"ControlPath={quoted(self._path or 'none')}", "-o", say)
        plain = ("-tt", *_PLAIN[1:]) if terminal else _PLAIN
        return ("ssh", *self._access.options(), *plain, *attach, "--", self.host, line)

    async def close(self) -> None:
        """End our master if it is not meant to stay."""
        if self._ours and not self._linger:
            await self.disconnect()

    async def disconnect(self) -> None:
        """End our master now; the user's own stays."""
        if self._ours and self._path:
            self.lost(self._generation)
            await self._control("exit", self._path)

    async def _connect_once(self, *, first: bool) -> None:
        """Connect, unless somebody else tried since the caller asked: then that try's failure is the answer."""
        if not first and self._failure:
            raise self._failure
        self._tries += 1
        self._failure = None
        try:
            await self._connect()
        except Exception as error:
            self._failure = error
            raise
        self._generation = max(self._generation, self._lost) + 1

    async def _connect(self) -> None:
        self._config = await self._resolve()
        users = next(iter(self._config.get("controlpath", ())), "none")
        if users != "none" and await self._control("check", Path(users)):
            self._path, self._ours = Path(users), False
            return
        directory = control_directory(self._directory)
        name = connection_name(self.host, self._config)
        self._path, self._ours = directory / name, True
        async with locked(directory / f"{name}.lock"):
            if not await self._control("check", self._path):
                self._path.unlink(missing_ok=True)  # of a master that was killed, or hangs
                await self._login(self._path)

    async def _resolve(self) -> dict[str, tuple[str, ...]]:
        reply = await _ask(("ssh", *self._access.options(), "-G", "--", self.host), _ANSWER)
        if reply.status:
            failure = diagnose(reply.words, LoginTarget(self.host, self.host, "", ""))
            raise failure.error or ConfigError(f"ssh cannot tell how to reach {self.host}", why=last_line(reply.words))
        return parse_config(reply.stdout)

    async def _control(self, word: str, path: Path) -> bool:
        where = ("-o", f"ControlPath={quoted(path)}", "-O", word)
        reply = await _ask(("ssh", *self._access.options(), *where, "--", self.host), _ANSWER)
        return reply.status == 0

    async def _login(self, path: Path) -> None:
        for pause in (*_PAUSES, None):
            failure = await self._try_login(path)
            if failure is None:
                self.opened += 1
                return
            if failure.error:
                raise failure.error
            if failure.kind is not Kind.BUSY or pause is None:
                raise LoginFailed(failure.reason)
            await asyncio.sleep(pause * random.uniform(0.5, 1.5))  # noqa: S311  only spreads clients

    async def _try_login(self, path: Path) -> Failure | None:
        argv = ("ssh", *self._access.options(), *_PLAIN, *self._master_options(path), "--", self.host)
        limit = self._access.connect_timeout * _LOGIN
        reply = await _ask(argv, limit)
        if reply.status == 0:
            return None
        if reply.status is None:
            return Failure(Kind.AWAY, f"the login was not done after {limit} s")
        return diagnose(reply.words, LoginTarget.of(self.host, self._config))

    def _master_options(self, path: Path) -> tuple[str, ...]:
        # Stricter is the user's right; less strict is not offered.
        strict = next(iter(self._config.get("stricthostkeychecking", ())), "") in ("true", "yes")
        return (
            *("-o", f"ConnectTimeout={self._access.connect_timeout}"),
            *("-o", f"ServerAliveInterval={self._access.keepalive}", "-o", "ServerAliveCountMax=3"),
            *(() if strict else ("-o", "StrictHostKeyChecking=accept-new")),
            *("-o", "ControlMaster=yes", "-o", f"ControlPath={quoted(path)}"),
            *("-o", f"ControlPersist={self._linger or 'yes'}", "-N", "-f"),
        )


async def _ask(argv: Sequence[str], limit: float) -> _Reply:
    """Run a short ssh command; its stderr goes to a file, as a master that goes to the background keeps it open."""
    with tempfile.TemporaryFile() as stdout, tempfile.TemporaryFile() as stderr:
        process = await asyncio.create_subprocess_exec(
            *argv, stdin=asyncio.subprocess.DEVNULL, stdout=stdout, stderr=stderr, start_new_session=True
        )
        status: int | None = None
        try:
            status = await asyncio.wait_for(process.wait(), limit)
        except asyncio.TimeoutError:
            pass
        finally:
            if process.returncode is None:
                process.send_signal(signal.SIGKILL)
                await process.wait()
        stdout.seek(0)
        stderr.seek(0)
        return _Reply(status, stdout.read().decode(errors="replace"), stderr.read().decode(errors="replace"))
