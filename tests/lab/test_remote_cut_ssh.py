"""Calls over a network that is far away, or that fails: a real sshd behind a relay."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from harness.chaos.submission.wire import ADDRESSES, Wire, listeners
from harness.delay import delayed
from tests.lab.sshd import HOST, Server
from tests.lab.test_remote_ssh import Start, folder, start
from towline.remote.base import Ending, Operation, Outcome
from towline.remote.ssh.openssh import OpenSSH

__all__ = ["folder", "start"]

PLACES = (0.0, 0.02, 0.1, 0.25, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98, 1.0)
"""Where the connection to the first host breaks, as parts of what a whole login and call send one way."""


async def call(server: Server, mark: Path, cut: tuple[str, int] | None, *, repeats: bool) -> tuple[Outcome, Wire]:
    """One call with two login hosts, the first of which is lost after so many bytes one way."""

    async def accident() -> None:
        wire.lose_first_host()

    way, place = cut or ("", 0)
    up, down = (place if way == each else None for each in ("up", "down"))
    port, sockets = listeners()
    wire = Wire((HOST, HOST), up, down, accident, server.port)
    await wire.serve(sockets)
    client = OpenSSH(ADDRESSES, server.access(port=port), control_dir=server.folder / "s", linger=0)
    try:
        operation = Operation("call", 'echo ran >>"$1"; echo answer', (str(mark),), timeout=20.0, repeats=repeats)
        return await client.run(operation), wire
    finally:
        await client.close()
        await client.disconnect()
        wire.close()


@pytest.mark.parametrize("way", ["up", "down"])
def test_a_first_host_that_dies_anywhere_in_a_call_never_makes_it_run_twice(start: Start, way: str) -> None:
    server = start()

    async def scene() -> set[Ending]:
        _, wire = await call(server, server.folder / "whole", None, repeats=False)
        size = getattr(wire, way)
        endings = set[Ending]()
        for number, part in enumerate(PLACES):
            mark = server.folder / f"mark-{number}"
            outcome, _ = await call(server, mark, (way, max(1, int(size * part))), repeats=False)
            runs = len(mark.read_text().splitlines()) if mark.exists() else 0
            assert outcome.ending in (Ending.DONE, Ending.UNKNOWN), (part, outcome)
            assert runs <= 1, (part, outcome)
            assert (outcome.stdout, runs) == (b"answer\n", 1) or outcome.ending is Ending.UNKNOWN, (part, outcome)
            endings.add(outcome.ending)
        return endings

    assert Ending.DONE in asyncio.run(asyncio.wait_for(scene(), 240))


def test_what_only_reads_has_its_answer_wherever_the_first_host_dies(start: Start) -> None:
    server = start()

    async def scene() -> None:
        _, wire = await call(server, server.folder / "whole", None, repeats=True)
        for part in (0.5, 0.9, 0.97, 1.0):
            outcome, _ = await call(server, server.folder / "mark", ("down", int(wire.down * part)), repeats=True)
            assert (outcome.ending, outcome.stdout) == (Ending.DONE, b"answer\n"), (part, outcome)

    asyncio.run(asyncio.wait_for(scene(), 120))


def test_a_round_trip_of_100_ms_changes_no_answer(start: Start) -> None:
    server = start()

    async def scene(port: int) -> None:
        client = server.client(access=server.access(port=port))
        outcomes = await asyncio.gather(*(client.run(Operation("x", f"echo {number}")) for number in range(20)))
        assert [outcome.stdout for outcome in outcomes] == [f"{number}\n".encode() for number in range(20)]
        large = b"x" * 3_000_000
        stored = await client.run(Operation("x", "wc -c <large", files={"large": large}))
        assert int(stored.stdout) == len(large)
        assert (await client.run(Operation("x", "head -c 3000000 /dev/zero"))).stdout == bytes(3_000_000)
        await client.close()

    with delayed(server.port, 0.05) as port:
        asyncio.run(asyncio.wait_for(scene(port), 120))
    assert server.logins == 1
