"""Submissions at 50 ms round trip: against NVIDIA's SDK, and against tar and sbatch by hand."""

from __future__ import annotations

import asyncio
import os
import shlex
import subprocess
import tempfile
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from harness.bench.registry import Reading, benchmark
from harness.bench.tao import submitter
from harness.bench.timing import compare
from harness.lab import TOWLINE, lab_environment
from towline import AsyncCluster, JobSpec, Resources
from towline.lab import Lab
from towline.lab.layout import ALICE, GPU_NODES, LOGINS

ROUND_TRIP_MS = "50"
SPEC = JobSpec(
    command=("true",), name="bench-submit", partition=("batch",), resources=Resources(gpus_per_node=1, time=600)
)
WORDS = ("run", "--detach", "--name", "bench-submit", "--partition", "batch", "--gpus-per-node", "1", "--time", "10m")
TAO_ROUNDS = 7
TAR_ROUNDS = 31


@dataclass(frozen=True)
class Bed:
    """The lab, far away and with nodes that take nothing new, so that what is submitted waits and costs nothing.

    Attributes:
        lab: the lab.
        scratch: a directory of this reading's own.
        env: for the `towline` command.
    """

    lab: Lab
    scratch: Path
    env: dict[str, str]


@contextmanager
def _bed() -> Generator[Bed]:
    with ExitStack() as stack:
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="tl")))
        env = stack.enter_context(lab_environment(scratch / "state"))
        lab = Lab.default()
        for fault in (("login-latency", ROUND_TRIP_MS), *(("node-drain", node.name) for node in GPU_NODES)):
            lab.fault_on(*fault)
            stack.callback(lab.fault_off, *fault)
        stack.callback(lab.run_on, "login1", ["scancel", "--user", ALICE.name], user=ALICE.name)
        # A warm connection to login1 as it was before the fault would not be far away.
        env["XDG_RUNTIME_DIR"] = str(scratch)
        os.environ.update({name: env[name] for name in ("TOWLINE_STATE_DIR", "TOWLINE_CLUSTER", "XDG_RUNTIME_DIR")})
        yield Bed(lab, scratch, env)


@contextmanager
def _by_api() -> Generator[Callable[[], None]]:
    loop = asyncio.new_event_loop()

    async def opened() -> AsyncCluster:
        return AsyncCluster.open("lab")

    cluster = loop.run_until_complete(opened())

    def submit() -> None:
        loop.run_until_complete(cluster.submit(SPEC))

    try:
        yield submit
    finally:
        loop.run_until_complete(cluster.close())
        loop.close()


@benchmark("submit-vs-tao", unit="x", limit=1 / 40)
def submit_vs_tao() -> Reading:
    """A submission by the API at 50 ms round trip, in submissions of nvidia-tao-sdk 7.2.0: both warm, the same job."""
    with _bed() as bed, submitter(bed.lab, bed.scratch) as tao, _by_api() as submit:
        return compare(submit, tao.submit, rounds=TAO_ROUNDS)


@benchmark("submit-vs-tao-cli", unit="x", limit=1 / 12)
def submit_vs_tao_cli() -> Reading:
    """The same by `towline run --detach`, its start included; the SDK's start is not counted."""
    with _bed() as bed, submitter(bed.lab, bed.scratch) as tao:

        def submit() -> None:
            subprocess.run([TOWLINE, *WORDS, "--", "true"], env=bed.env, stdout=subprocess.DEVNULL, check=True)

        return compare(submit, tao.submit, rounds=TAO_ROUNDS)


@benchmark("submit-vs-tar", unit="x", limit=1.25)
def submit_vs_tar() -> Reading:
    """A submission by the API at 50 ms against `tar cz | ssh 'tar xz; sbatch'`, both over warm connections."""
    with _bed() as bed, _by_api() as submit, _plain_ssh(bed) as ssh:
        submit()
        source = _files(bed)
        numbers = count()

        def baseline() -> None:
            there = f"/lustre/alice/bench-tar/{next(numbers)}"
            line = f"mkdir -p {there} && tar xzf - -C {there} && sbatch --parsable {there}/script/batch"
            sent = f"tar czf - -C {source} . | {shlex.join(ssh)} {shlex.quote(line)}"
            subprocess.run(["sh", "-c", sent], stdout=subprocess.DEVNULL, check=True)

        try:
            return compare(submit, baseline, rounds=TAR_ROUNDS)
        finally:
            bed.lab.run_on("login1", ["rm", "-rf", "/lustre/alice/bench-tar"])


def _files(bed: Bed) -> Path:
    """The files of the submission that Towline made, for tar."""
    source = bed.scratch / "files"
    jobs = bed.lab.run_on("login1", ["sh", "-c", "ls -dt /lustre/alice/towline/jobs/*"]).stdout.split()
    subprocess.run(["cp", "-r", f"{bed.lab.paths.lustre}/{jobs[0].removeprefix('/lustre/')}", str(source)], check=True)
    return source


@contextmanager
def _plain_ssh(bed: Bed) -> Generator[tuple[str, ...]]:
    """Plain ssh to the first login host over a connection that is open already."""
    options = (
        "-F",
        "none",
        "-i",
        str(bed.lab.paths.key(ALICE)),
        "-o",
        f"UserKnownHostsFile={bed.lab.paths.known_hosts}",
    )
    ssh = ("ssh", *options, "-o", "BatchMode=yes", "-o", f"ControlPath={bed.scratch}/plain")
    host = f"{ALICE.name}@{LOGINS[0].aliases[0]}"
    subprocess.run((*ssh, "-M", "-N", "-f", host), check=True)
    try:
        yield (*ssh, "-o", "ControlMaster=no", host)
    finally:
        subprocess.run((*ssh, "-O", "exit", host), stderr=subprocess.DEVNULL, check=True)
