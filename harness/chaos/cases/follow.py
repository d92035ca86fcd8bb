"""Logs are followed while the connection is cut again and again: the bytes received are the files."""

from __future__ import annotations

import asyncio
import hashlib
import sys
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from pathlib import Path

from harness.chaos.registry import Run, Story, chaos
from harness.chaos.submission.clients import kill_masters
from harness.chaos.submission.wire import ADDRESSES, Wire, listeners
from harness.lab import lab_environment
from towline import AsyncCluster, JobSpec
from towline.config.files import load_profile
from towline.engine.events import LogChunk
from towline.engine.job import AsyncJob
from towline.engine.store import Store
from towline.engine.watching import pace
from towline.lab import Lab
from towline.remote.ssh.access import Access
from towline.remote.ssh.openssh import OpenSSH

PATIENCE = 90.0
"""Seconds until a byte must have come after a cut."""
REQUEUED = 70
"""Of so many cuts one comes with a new attempt."""
WRITES = """
stop=$TOWLINE_RESULTS_DIR/stop number=0
block=$(head -c 6000 /dev/urandom | od -An -tx1)
while [ ! -e "$stop" ]; do
    number=$((number + 1))
    echo "$TOWLINE_ATTEMPT $RANK $number $block"
    echo "$TOWLINE_ATTEMPT $RANK $number" >&2
    sleep 0.03
done
"""
Source = tuple[int, int | None, str]


class _Got:
    """What came of one file."""

    def __init__(self) -> None:
        self.sum = hashlib.sha256()
        self.size = 0


@chaos("follow", runs=200)
@contextmanager
def follow() -> Generator[Story]:
    """Following logs of ranks through cut connections, killed ssh, lost login hosts and requeues: no byte is lost."""
    with tempfile.TemporaryDirectory(prefix="tl") as scratch, lab_environment(Path(scratch, "state")):
        follower = _Follower(Path(scratch))
        try:
            yield follower
        finally:
            follower.close()


class _Follower(Story):
    """The client and the network around it, in a thread of their own."""

    def __init__(self, scratch: Path) -> None:
        self._scratch = scratch
        self._lab = Lab.default()
        self._loop = asyncio.new_event_loop()
        self._wire: Wire | None = None
        self._job: AsyncJob | None = None
        self._got: defaultdict[Source, _Got] = defaultdict(_Got)
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        if not self._wait_for(lambda: self._received > 0):
            raise SystemExit(f"the first byte did not come: {self._failure}")

    @property
    def _received(self) -> int:
        return sum(got.size for got in list(self._got.values()))

    # --- The cuts ---

    def play(self, run: Run) -> Sequence[str]:
        kind = run.random.choices(("wire", "master", "host"), weights=(3, 1, 1))[0]
        time.sleep(run.random.uniform(0, 1.0))
        host = run.random.choice(load_profile("lab").hosts) if kind == "host" else ""
        asyncio.run_coroutine_threadsafe(self._cut(kind, host), self._loop).result()
        before = self._received
        run.seen[kind] += 1
        if run.number % REQUEUED == 0:
            self._requeue()
            run.seen["requeue"] += 1
        if self._wait_for(lambda: self._received > before):
            return []
        return [f"no byte came within {PATIENCE:g} s after a cut ({kind}): {self._failure}"]

    async def _cut(self, kind: str, host: str) -> None:
        assert self._wire
        self._wire.away = {host} if host else set()
        if kind == "master":
            kill_masters(self._scratch)
        else:
            self._wire.cut()

    def _requeue(self) -> None:
        assert self._job
        self._lab.run_on("login1", ["scontrol", "requeue", self._job.record.last.slurm_id], user="alice", check=False)

    def _wait_for(self, condition: Callable[[], bool]) -> bool:
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline and not self._failure:
            if condition():
                return True
            time.sleep(0.02)
        return False

    # --- The end ---

    def settle(self) -> Sequence[str]:
        assert self._job
        directory = self._job.record.directory
        self._lab.run_on("login1", ["touch", f"{directory}/results/stop"], user="alice")
        self._thread.join(PATIENCE * 2)
        if self._thread.is_alive() or self._failure:
            return [f"following did not end: {self._failure}"]
        found: list[str] = []
        listed = self._lab.run_on(
            "login1", ["sh", "-c", f"cd {directory}/attempts && sha256sum */ranks/*"], user="alice"
        )
        there = dict(map(_source, listed.stdout.splitlines()))
        for source, digest in there.items():
            if digest != self._got[source].sum.hexdigest():
                found.append(f"{source}: the {self._got[source].size} bytes received are not the file")
        attempts = sorted({source[0] for source in there})
        print(f"   {self._received} bytes of {len(there)} files and attempts {attempts} were compared", file=sys.stderr)
        return found

    def close(self) -> None:
        if self._thread.is_alive() and self._job:
            self._lab.run_on("login1", ["scancel", self._job.record.last.slurm_id], user="alice", check=False)
        self._thread.join(10)
        kill_masters(self._scratch)

    # --- The thread ---

    def _run(self) -> None:
        try:
            self._loop.run_until_complete(self._follow())
        except BaseException as error:
            self._failure = error

    async def _follow(self) -> None:
        # Looks follow each other at once, so that a cut falls into one.
        pace.QUICK = pace.SLOWEST_FILES = 0.02
        profile = load_profile("lab")
        port, sockets = listeners()
        self._wire = Wire(tuple(profile.hosts), None, None, _nothing)
        await self._wire.serve(sockets)
        access = Access(
            user=profile.user or "",
            port=port,
            identity_file=profile.identity_file,
            known_hosts_file=self._scratch / "known",
            connect_timeout=5,
            config_file=Path("/dev/null"),
        )
        remote = OpenSSH(ADDRESSES, access, control_dir=self._scratch / "s", linger=0)
        async with AsyncCluster(profile, remote=remote, store=Store(self._scratch / "state")) as cluster:
            resources = {"nodes": 2, "time": "60m"}
            spec = JobSpec.build(shell=WRITES, name="chaos-follow", log_per="rank", resources=resources)
            self._job = await cluster.submit(spec)
            async for event in self._job.follow():
                if isinstance(event, LogChunk) and event.rank is not None:
                    self._take(event)
        self._wire.close()
        await asyncio.sleep(0.3)  # what the wire still holds ends

    def _take(self, chunk: LogChunk) -> None:
        got = self._got[chunk.attempt, chunk.rank, chunk.stream]
        got.sum.update(chunk.data)
        got.size += len(chunk.data)


async def _nothing() -> None:
    pass


def _source(line: str) -> tuple[Source, str]:
    digest, name = line.split()
    attempt, _, file = name.split("/")
    return (int(attempt), int(file.partition("-")[0]), file.rpartition(".")[2]), digest
