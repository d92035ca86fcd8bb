"""Channels that stay open between calls, over a real sshd: who gets one, and what becomes of it."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys

import pytest

from tests.lab.sshd import Server, commands, kill, wait_until
from tests.lab.test_remote_ssh import Start, folder, lifeline, start
from tests.unit.remote.lifeline import LifeLine
from towline.remote.base import Ending, Operation, Outcome
from towline.remote.ssh.openssh import OpenSSH

__all__ = ["folder", "lifeline", "start"]

WHICH = "cut -d' ' -f4 /proc/$PPID/stat"
"""Prints the process that serves the channel."""


def script(text: str, *args: str, timeout: float | None = 60.0, survives: bool = False) -> Operation:
    return Operation("test", text, args, timeout=timeout, survives=survives)


async def warm(client: OpenSSH) -> None:
    """Have a channel open that serves the next call."""
    for _ in range(2):
        assert (await client.run(script("true"))).ok


def channels(server: Server) -> list[int]:
    """The ssh processes of ours that hold channels."""
    marker = f"{server.folder}/s/".encode()
    return [pid for pid, line in commands() if line.startswith(b"ssh\0") and marker in line and b"exec /bin/sh" in line]


def run(scene: object) -> None:
    assert asyncio.iscoroutine(scene)
    asyncio.run(asyncio.wait_for(scene, 90))


def test_calls_after_the_first_share_a_channel(start: Start) -> None:
    server = start()

    async def scene() -> None:
        client = server.client()
        assert (await client.run(script("true"))).ok
        assert not channels(server)
        served = [await client.run(script(WHICH)) for _ in range(3)]
        assert len({outcome.stdout for outcome in served}) == 1
        assert len(channels(server)) == 1
        assert (client.calls, client.logins) == (4, 1)
        await client.close()
        assert not channels(server)

    run(scene())


def test_one_client_serves_several_event_loops(start: Start) -> None:
    server = start()
    client = server.client()

    async def scene() -> None:
        outcomes = await asyncio.gather(*(client.run(script("true")) for _ in range(6)))
        assert all(outcome.ok for outcome in outcomes)

    for _ in range(3):
        run(scene())
        assert not channels(server)


def test_a_channel_that_died_between_calls_is_replaced(start: Start) -> None:
    server = start()

    async def scene() -> None:
        client = server.client()
        await warm(client)
        for pid in channels(server):
            kill(pid)
        await asyncio.to_thread(wait_until, lambda: not channels(server))
        assert (await client.run(script("true"))).ok
        server.cut()
        # A call that goes out while the channel's end is still under way can only be told that nobody knows.
        await asyncio.to_thread(wait_until, lambda: not server.master_pids() and not channels(server))
        assert (await client.run(script("true"))).ok
        assert server.logins == 2

    run(scene())


@pytest.mark.parametrize("side", ["channel", "connection", "server"])
def test_a_kept_channel_that_dies_in_the_middle_is_unknown(start: Start, side: str, lifeline: LifeLine) -> None:
    server = start()

    async def scene() -> Outcome:
        client = server.client()
        await warm(client)
        call = asyncio.create_task(client.run(script('exec 9>"$1"; echo up >&9; sleep 1000', str(lifeline.path))))
        assert await asyncio.to_thread(lifeline.said)
        if side == "server":
            server.cut()
        for pid in channels(server) if side == "channel" else server.master_pids() if side == "connection" else ():
            kill(pid)
        outcome = await call
        assert (await client.run(script("true"))).ok
        return outcome

    assert asyncio.run(asyncio.wait_for(scene(), 90)).ending is Ending.UNKNOWN
    assert lifeline.ended()
    wait_until(lambda: not list(server.scratch.iterdir()))


@pytest.mark.parametrize("kept", [False, True])
def test_what_only_reads_is_read_again_when_the_connection_falls_silent(start: Start, kept: bool) -> None:
    server = start()
    client = server.client(access=server.access(keepalive=1))

    async def scene() -> None:
        assert (await client.run(script("true"))).ok
        if kept:
            await warm(client)
        frozen = server.freeze()
        reading = await client.run(Operation("look", "echo read", repeats=True))
        assert (reading.ending, reading.stdout) == (Ending.DONE, b"read\n")
        for pid in frozen:
            kill(pid)

    run(scene())
    assert server.logins == 2


def test_nothing_stays_on_the_login_host_when_the_client_is_killed(start: Start, lifeline: LifeLine) -> None:
    server = start()
    program = f"""
import asyncio
from pathlib import Path
from tests.lab.sshd import Server
from towline.remote.base import Operation
async def main():
    client = Server(Path({str(server.folder)!r}), port={server.port}).client()
    for _ in range(2):
        await client.run(Operation("x", "true"))
    idle = [client.run(Operation("x", "sleep 0.3")) for _ in range(3)]
    await asyncio.gather(*idle)
    await client.run(Operation("x", 'exec 9>"$1"; echo up >&9; sleep 1000', ({str(lifeline.path)!r},)))
asyncio.run(main())
"""
    with subprocess.Popen([sys.executable, "-c", program]) as client:
        assert lifeline.said()
        client.kill()
    # The ssh processes outlive their parent until they see the end of their stdin, as they would anywhere.
    assert lifeline.ended()
    wait_until(lambda: not list(server.scratch.iterdir()))
    wait_until(lambda: not channels(server))


def test_idle_channels_leave_room_for_other_processes(start: Start) -> None:
    server = start("MaxSessions 2")

    async def scene() -> None:
        one, other = server.client(), server.client()
        await warm(one)
        await asyncio.gather(*(one.run(script("sleep 0.1")) for _ in range(4)))
        outcomes = await asyncio.gather(*(other.run(script("true")) for _ in range(4)))
        assert all(outcome.ok for outcome in outcomes)
        assert server.logins == 1

    run(scene())


def test_twenty_calls_over_two_warm_channels(start: Start) -> None:
    server = start("MaxSessions 2")

    async def scene() -> None:
        client = server.client()
        await warm(client)
        calls = [client.run(script('echo "$1"', str(number))) for number in range(20)]
        assert [outcome.stdout for outcome in await asyncio.gather(*calls)] == [b"%d\n" % n for n in range(20)]
        large = Operation("large", "wc -c <data", files={"data": bytes(1_000_000)})
        assert [o.stdout for o in await asyncio.gather(client.run(large), client.run(large))] == [b"1000000\n"] * 2
        assert server.logins == 1

    run(scene())


def test_a_hung_connection_takes_its_channels_along(start: Start) -> None:
    server = start()

    async def scene() -> None:
        client = server.client()
        await warm(client)
        [master] = [pid for pid in server.master_pids() if pid not in channels(server)]
        os.kill(master, signal.SIGSTOP)
        assert (await client.run(script("true", timeout=1.0))).ending is Ending.TIMED_OUT
        assert (await client.run(script("true"))).ok
        assert server.logins == 2
        kill(master)

    run(scene())


def test_a_cancelled_call_leaves_the_channel_for_the_next(start: Start, lifeline: LifeLine) -> None:
    server = start()

    async def scene() -> None:
        client = server.client()
        await warm(client)
        before = (await client.run(script(WHICH))).stdout
        call = asyncio.create_task(client.run(script('exec 9>"$1"; echo up >&9; sleep 1000', str(lifeline.path))))
        assert await asyncio.to_thread(lifeline.said)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert await asyncio.to_thread(lifeline.ended)
        assert (await client.run(script(WHICH))).stdout == before

    run(scene())


def test_a_client_that_warms_up_has_a_channel_for_its_first_call(start: Start) -> None:
    server = start()

    async def scene() -> None:
        client = server.client()
        client.warm_up()
        await asyncio.to_thread(wait_until, lambda: bool(channels(server)))
        opened = channels(server)
        assert (await client.run(script("true"))).ok
        assert channels(server) == opened
        assert (client.calls, client.logins) == (1, 1)
        await client.close()
        assert not channels(server)

    run(scene())


def test_a_client_that_is_closed_while_it_warms_up_leaves_nothing(start: Start) -> None:
    server = start()

    async def scene() -> None:
        client = server.client()
        client.warm_up()
        await client.close()
        assert not channels(server)

    run(scene())


def test_a_channel_that_could_not_be_opened_in_advance_costs_nothing(start: Start) -> None:
    server = start()

    async def scene() -> None:
        client = server.client()
        client.warm_up()
        await asyncio.to_thread(wait_until, lambda: bool(channels(server)))
        server.cut()
        await asyncio.to_thread(wait_until, lambda: not server.master_pids() and not channels(server))
        assert (await client.run(script("true"))).ok
        assert server.logins == 2

    run(scene())
