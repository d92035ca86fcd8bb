"""The system's OpenSSH as a `Remote`: one shared connection per login host, failover, bounded channels."""

from __future__ import annotations

import asyncio
import random
import re
import secrets
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from towline.models.errors import ConfigError, TowlineError, Unreachable
from towline.remote.attended import attended
from towline.remote.base import Ending, Operation, Outcome, Sink
from towline.remote.ssh.access import Access
from towline.remote.ssh.diagnosis import last_line
from towline.remote.ssh.master import LoginFailed, Master
from towline.remote.ssh.sessions import Sessions, count_sessions
from towline.remote.ssh.slots import Slots
from towline.remote.wire.archive import Payload
from towline.remote.wire.channel import Talk, converse
from towline.remote.wire.framing import bootstrap_line
from towline.remote.wire.kept import Kept, Pool

_PATIENCE = 3.0
"""Seconds for an operation to stop on the other side before we stop listening."""
_REFUSALS = 60.0
"""Seconds to go on trying while the server refuses channels."""
_REOPENS = 2
"""Times that one call has a lost connection opened again."""
_NO_CHANNEL = re.compile(r"session request failed|refused session request|Session open refused|open failed")
_TAR_ENDS = re.compile(r"^tar: (?:Exiting with failure status|Error is not recoverable).*", re.MULTILINE)
"""What GNU tar says last, after the reason."""
_PASSWORD = re.compile(r"password has expired|required to change your password", re.IGNORECASE)
"""What PAM and sshd say in place of running a command."""
_MAYBE_SENT = re.compile(r"read from master failed")
"""The master died while it opened the channel; it may have passed the command on."""


class OpenSSH:
    """Runs operations on the first login host that can be reached.

    Args:
        hosts: names for ssh (aliases of ~/.ssh/config count), in order of preference.
        access: user, port, key and known hosts, as far as the profile gives them.
        control_dir: a private directory for sockets; None takes `$XDG_RUNTIME_DIR/towline`, and where that is not
            to be had a private one under /tmp.
        channels: calls at a time per host; fewer if the server (MaxSessions) wants that.
        linger: seconds that a connection stays for the next process; 0 ends it at `close`.
        idle: seconds that a channel stays open for the next call after a host's first; 0 keeps none.

    Attributes:
        calls: operations that went over a connection.
        host: the login host that worked last; it is tried first.
    """

    def __init__(
        self,
        hosts: Sequence[str],
        access: Access | None = None,
        *,
        control_dir: Path | None = None,
        channels: int = 8,
        linger: int = 600,
        idle: float = 30.0,
    ) -> None:
        if not hosts or any(not host or host.startswith("-") for host in hosts):
            raise ConfigError("the cluster's profile names no login host", fix="Set `hosts` in the profile.")
        self.calls = 0
        self.host = hosts[0]
        self._access = access or Access()
        self._masters = {host: Master(host, self._access, control_dir, linger) for host in hosts}
        self._slots = {host: Slots(channels) for host in hosts}
        self._pools = {host: Pool(idle) for host in hosts}
        self._known: set[str] = set()
        self._idle = idle
        self._checked = False
        self._warming: asyncio.Future[None] | None = None

    @property
    def logins(self) -> int:
        """How many logins this object made."""
        return sum(master.opened for master in self._masters.values())

    async def run(self, operation: Operation, *, sink: Sink | None = None) -> Outcome:
        """Run one operation; see `Remote.run`. Its time limit counts from when it has a channel.

        Raises:
            AccessRefused: a host refused the key, or its host key is not the known one.
            ConfigError: ssh is missing, its configuration is broken, or the key file is open to others.
            TransferFailed: a local file could not be read.
        """
        if not self._checked:
            self._access.check()
            self._checked = True
        if warming := self._warming:
            self._warming = None
            await warming
        reasons: list[str] = []
        for host in sorted(self._masters, key=lambda name: name != self.host):
            outcome = await self._run_on(host, operation, sink)
            if isinstance(outcome, Outcome):
                self.host = host
                return outcome
            reasons.append(f"{host}: {outcome}")
        return Outcome(Ending.NOT_STARTED, detail="\n".join(reasons))

    def warm_up(self) -> None:
        """Begin to open a connection and a channel for a call that is sure to come, and that raises the errors."""
        if self._idle and not self._warming:
            self._warming = asyncio.ensure_future(self._warm(self.host))

    async def _warm(self, host: str) -> None:
        self._access.check()
        try:
            generation = await self._masters[host].ready()
        except LoginFailed:
            hosts = list(self._masters)
            self.host = hosts[(hosts.index(host) + 1) % len(hosts)]  # this one would only take its time again
            return
        nonce = secrets.token_hex(16)
        argv = self._masters[host].command(nonce, bootstrap_line())
        await self._pools[host].add(await Kept.open(argv, generation, nonce=nonce))
        self._known.add(host)

    async def count_sessions(self) -> Sessions:
        """How many channels the host that worked last allows at a time, found by opening some on its connection."""
        master = self._masters[self.host]
        await master.ready()
        return await count_sessions(master.command)

    @asynccontextmanager
    async def lend(self, line: str) -> AsyncGenerator[tuple[str, ...], None]:
        """A channel for a program of this machine; see `Lends`."""
        async with self._place() as master:
            yield master.command(secrets.token_hex(16), line)

    async def hand_over(self, line: str, *, terminal: bool) -> int:
        """A channel for the user of this process; see `HandsOver`."""
        async with self._place() as master:
            return await attended(master.command(secrets.token_hex(16), line, terminal=terminal))

    @asynccontextmanager
    async def _place(self) -> AsyncGenerator[Master, None]:
        """The connection to the host that is in use, with room for one more channel on it."""
        master = self._masters[self.host]
        try:
            await master.ready()
        except LoginFailed as failed:
            raise Unreachable(f"{self.host} could not be reached", why=str(failed)) from None
        async with self._slots[self.host], self._pools[self.host].place(self._slots[self.host].limit):
            yield master

    async def close(self) -> None:
        """End the kept channels, and the connections that were made not to stay."""
        if self._warming:
            self._warming.cancel()
            with suppress(asyncio.CancelledError, TowlineError, OSError):
                await self._warming
        for pool in self._pools.values():
            await pool.close()
        for master in self._masters.values():
            await master.close()

    async def disconnect(self) -> None:
        """End this object's connections now, for all processes that share them; the user's own stay."""
        for master in self._masters.values():
            await master.disconnect()

    async def _run_on(self, host: str, operation: Operation, sink: Sink | None) -> Outcome | str:
        """The outcome, or why nothing happened on this host and the next one may be tried."""
        master, slots = self._masters[host], self._slots[host]
        reopens = refusals = 0
        since = time.monotonic()
        while True:
            try:
                generation = await master.ready()
            except LoginFailed as failed:
                return str(failed)
            async with slots:
                talk = await self._talk(host, generation, operation, sink)
                refused, again = _refused(talk), _unattached(talk) or _stale(talk)
                if refused:
                    await self._give_way(host)
                elif not again:
                    slots.worked()
                    self._known.add(host)
                    self.calls += 1
                    outcome = _judge(talk, host, master, generation)
                    if not _lost(outcome) or not operation.repeats or sink:
                        return outcome
            if refused:
                refusals += 1
                if time.monotonic() - since > _REFUSALS:
                    return f"it refuses another channel: {last_line(talk.words)}"
                await asyncio.sleep(_pause(refusals))
            else:
                if not _stale(talk):
                    master.lost(generation)
                reopens += 1
                if reopens > _REOPENS:
                    return "the shared connection was lost again and again"

    async def _talk(self, host: str, generation: int, operation: Operation, sink: Sink | None) -> Talk:
        """Over a kept channel, unless it is a host's first call (it may well be the only one) or a sink waits.

        A kept channel hands out no answer before its end.
        """
        nonce = secrets.token_hex(16)
        argv = self._masters[host].command(nonce, bootstrap_line())
        if sink or not self._idle or host not in self._known:
            payload = Payload.of(operation, nonce)
            async with self._pools[host].place(self._slots[host].limit):
                return await converse(argv, payload, operation, nonce, sink=sink, patience=_PATIENCE)
        await asyncio.sleep(0)  # hear first of channels that have ended
        async with self._pools[host].channel(argv, generation, self._slots[host].limit) as kept:
            return await kept.converse(operation, nonce, patience=_PATIENCE)

    async def _give_way(self, host: str) -> None:
        """The server wants no more channels: end one that is idle, or else make do with those that there are."""
        pool = self._pools[host]
        if len(pool):
            await pool.trim(len(pool) - 1)
        else:
            self._slots[host].refused()


def _pause(refusals: int) -> float:
    """Seconds before the next try; spread, so that clients do not come in step."""
    return min(2.0, 0.05 * 2 ** min(refusals, 6)) * random.uniform(0.5, 1.5)  # noqa: S311


def _unattached(talk: Talk) -> bool:
    """Whether ssh never had a channel for this talk, so that nothing ran."""
    return talk.err.unattached and not talk.out.started and not (talk.sent and _MAYBE_SENT.search(talk.words))


def _stale(talk: Talk) -> bool:
    """Whether a kept channel had ended before it took the call whole, so that nothing ran."""
    return not talk.first and talk.ending is Ending.NOT_STARTED and not talk.out.refused


def _lost(outcome: Outcome | str) -> bool:
    """Whether nobody knows what became of the call."""
    return isinstance(outcome, Outcome) and outcome.ending is Ending.UNKNOWN


def _refused(talk: Talk) -> bool:
    """Whether the server did not want one more channel on the connection."""
    return _unattached(talk) and bool(_NO_CHANNEL.search(talk.words))


def _judge(talk: Talk, host: str, master: Master, generation: int) -> Outcome | str:
    """What a talk over a channel means. ssh's exit status 255 is also any command's; others are the login shell's."""
    if talk.timed_out:
        if not talk.out.started:
            master.lost(generation)  # a connection that hangs must not take the next call along
        return talk.outcome(host, talk.ending or Ending.UNKNOWN, "the time limit passed")
    if talk.ending is Ending.DONE:
        return talk.outcome(host, Ending.DONE)
    if talk.ending is Ending.NOT_STARTED:
        return last_line(_TAR_ENDS.sub("", talk.words)) or "the connection was lost while sending"
    if talk.first and talk.ending is None and talk.status is not None and 0 <= talk.status < 255:
        return _no_shell(talk)
    # What ssh says after it has lost its connection is about the one that our ProxyCommand does not make.
    said = "the shared connection broke" if talk.err.unattached else last_line(talk.words)
    return talk.outcome(host, Ending.UNKNOWN, said or "the connection was lost")


def _no_shell(talk: Talk) -> str:
    """The login shell ended in an orderly way and never ran our line: a forced command or a restricted shell."""
    lines = f"{talk.out.outside.text()}\n{talk.words}".split("\n")
    first = next((line.strip() for line in lines if line.strip()), "")
    said = f"it answered: {first}" if first else "it answered nothing"
    if _PASSWORD.search("\n".join(lines)):
        return f"the account's password has expired, and nothing runs there before it is changed; {said}"
    return f"the account has a forced command or a restricted shell there; {said}"
