"""One submission by a client of its own, behind a wire of its own; the cut happens to it."""

from __future__ import annotations

import asyncio
import contextlib
import multiprocessing
import os
import signal
import socket
import sys
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from multiprocessing.process import BaseProcess
from pathlib import Path

from harness.chaos.submission.cuts import Cut
from harness.chaos.submission.wire import ADDRESSES, Wire, listeners
from towline.config.profile import ClusterProfile
from towline.engine.planning.plans import make_plan
from towline.engine.session import Session
from towline.engine.store import Store
from towline.engine.submitting import submission
from towline.models.errors import TowlineError
from towline.models.spec import JobSpec
from towline.remote.ssh.access import Access
from towline.remote.ssh.openssh import OpenSSH

FORK = multiprocessing.get_context("fork")
"""Clients begin with everything imported; starting Python for each would take most of the time."""
_HANG_SECONDS = 1.0
_AFTERGLOW_SECONDS = 0.3
"""How long the wire goes on to carry what a dead client has sent."""


@dataclass(frozen=True)
class Client:
    """Who submits one job, and how.

    Attributes:
        profile: the lab's.
        job_id, name: of the job.
        cut: what happens.
        state: the client's state directory.
        scratch: a directory for it alone, with a short name.
        setup: the profile's shell line for this client.
        mark: a file that is there once the script ends or stands still; then the client is killed, if the cut says so.
    """

    profile: ClusterProfile
    job_id: str
    name: str
    cut: Cut
    state: Path
    scratch: Path
    setup: str = ""
    mark: Path | None = None

    def start(self) -> BaseProcess:
        """Submit in another process, which ends when the client has ended and all is quiet."""
        process = FORK.Process(target=_play, args=(self,))
        process.start()
        return process


def _play(client: Client) -> None:
    """The process that holds the wire."""
    client.scratch.mkdir(parents=True)
    port, sockets = listeners()
    worker = FORK.Process(target=_submit, args=(client, port, sockets))
    worker.start()
    asyncio.run(_carry(client, worker, sockets))


def _submit(client: Client, port: int, sockets: list[socket.socket]) -> None:
    """The client's own process."""
    for one in sockets:
        one.close()
    with (client.scratch / "log").open("w") as log:
        sys.stdout = sys.stderr = log
        try:
            print(asyncio.run(_submitted(client, port)))
        except TowlineError as error:
            print(error.code, error)


async def _submitted(client: Client, port: int) -> str:
    profile = client.profile
    access = Access(
        user=profile.user or "",
        port=port,
        identity_file=profile.identity_file,
        known_hosts_file=client.scratch / "known",
        connect_timeout=5,
        config_file=Path("/dev/null"),
    )
    remote = OpenSSH(ADDRESSES, access, control_dir=client.scratch / "s", linger=0)
    store = Store(client.state)
    session = Session(profile.model_copy(update={"setup": client.setup}), remote, store)
    facts = store.facts(profile.name)
    assert facts, "the first submission has left none"
    begin = {"begin": "+1h"} if client.cut.waits else {}
    spec = JobSpec.build(command=["true"], name=client.name, partition=["cpu"], resources={"time": "5m"}, **begin)
    plan = make_plan(spec, session.profile, facts, client.job_id)
    try:
        record = await submission.submit(session, plan, {}, patience=client.cut.patience)
    finally:
        await remote.close()
        store.close()
    return f"{record.state} {record.slurm_ids}"


async def _carry(client: Client, worker: BaseProcess, sockets: list[socket.socket]) -> None:
    cut = client.cut

    async def accident() -> None:
        await _ACCIDENTS[cut.kind](wire, worker, client)

    wire = Wire(tuple(client.profile.hosts), cut.up, cut.down, accident)
    await wire.serve(sockets)
    deadline = time.monotonic() + 150
    while worker.is_alive() and time.monotonic() < deadline:
        await asyncio.sleep(0.02)
        if not cut.alive and client.mark and client.mark.exists():
            worker.kill()
    worker.kill()
    await asyncio.sleep(_AFTERGLOW_SECONDS)
    (client.scratch / "carried").write_text(f"{wire.up} {wire.down}")
    wire.close()
    kill_masters(client.scratch)


async def _kill_client(_wire: Wire, worker: BaseProcess, _client: Client) -> None:
    worker.kill()


async def _reset(wire: Wire, _worker: BaseProcess, _client: Client) -> None:
    wire.cut()


async def _hang(wire: Wire, _worker: BaseProcess, _client: Client) -> None:
    await asyncio.sleep(_HANG_SECONDS)
    wire.cut()


async def _kill_master(_wire: Wire, _worker: BaseProcess, client: Client) -> None:
    kill_masters(client.scratch)


async def _lose_host(wire: Wire, _worker: BaseProcess, _client: Client) -> None:
    wire.lose_first_host()


_ACCIDENTS: dict[str, Callable[[Wire, BaseProcess, Client], Awaitable[None]]] = {
    "client": _kill_client,
    "wire": _reset,
    "hang": _hang,
    "master": _kill_master,
    "host": _lose_host,
}


def kill_masters(scratch: Path) -> None:
    """End every ssh that has its socket there."""
    wanted = str(scratch / "s").encode()
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            is_ssh = entry.name.isdecimal() and (entry / "comm").read_text().startswith("ssh")
            if is_ssh and wanted in (entry / "cmdline").read_bytes():
                os.kill(int(entry.name), signal.SIGKILL)
