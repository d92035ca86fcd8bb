"""One script for `tao_sdk`, run by NVIDIA's SDK and by Towline, at 50 ms round trip."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from harness.bench.registry import Reading, benchmark
from harness.bench.tao import BASE, Submitter, ours, submitter
from harness.bench.timing import compare
from towline.lab import Lab
from towline.lab.layout import ALICE, GPU_NODES

ROUND_TRIP_MS = "50"
CALLS = {"submit": 50, "status": 3, "logs": 9, "cancel": 1}
"""Each call and its rounds: 50 jobs are submitted one after another, and each round of `status` asks for all of them.
NVIDIA's SDK may take a minute to cancel a job."""
PATIENCE = 300.0


class Side:
    """One of the two, with a job that has a log, one that waits, and those that are to be cancelled."""

    def __init__(self, script: Submitter) -> None:
        self._script = script
        self._logged = ""
        self._waiting: list[str] = []

    def begin(self) -> None:
        """Submit a job that will leave a log."""
        self._logged = self._script.submit("seq 1 1000")

    def wait(self) -> None:
        """See that job end."""
        end = time.monotonic() + PATIENCE
        while self._script.ask(f"status {self._logged}") not in ("Complete", "Error"):
            if time.monotonic() > end:
                raise SystemExit("the job for the log did not end")
            time.sleep(1)

    def submit(self) -> None:
        """A job that waits."""
        self._waiting.append(self._script.submit())

    def status(self) -> None:
        """The status of each job that waits, as a script with several asks for it."""
        for job in self._waiting:
            self._script.ask(f"status {job}")

    def logs(self) -> None:
        """The last lines of a log."""
        if "1000" not in self._script.ask(f"logs {self._logged}"):
            raise SystemExit("the log is not whole")

    def cancel(self) -> None:
        """Cancel a job that waits; NVIDIA's SDK does not always see that it did."""
        self._script.ask(f"cancel {self._waiting.pop()}")

    def call(self, name: str) -> Callable[[], None]:
        """One of the calls."""
        return getattr(self, name)


@contextmanager
def _sides() -> Generator[tuple[Side, Side]]:
    lab = Lab.default()
    with ExitStack() as stack:
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="tl")))
        sides = [Side(stack.enter_context(open_script(lab, scratch))) for open_script in (ours, submitter)]
        with _drained(lab):
            for side in sides:
                side.begin()
            _make_log_folders(lab)
        for side in sides:
            side.wait()
        stack.enter_context(_drained(lab))
        lab.fault_on("login-latency", ROUND_TRIP_MS)
        stack.callback(lab.fault_off, "login-latency", ROUND_TRIP_MS)
        stack.callback(lab.run_on, "login1", ["scancel", "--user", ALICE.name], user=ALICE.name)
        yield sides[0], sides[1]


@contextmanager
def _drained(lab: Lab) -> Generator[None]:
    """Nodes take nothing new meanwhile."""
    with ExitStack() as stack:
        for node in GPU_NODES:
            lab.fault_on("node-drain", node.name)
            stack.callback(lab.fault_off, "node-drain", node.name)
        yield


def _make_log_folders(lab: Lab) -> None:
    """NVIDIA's SDK leaves them to Slurm, which does not make them before 23.11: the job dies without a log."""
    text = f"squeue --me --noheader --format=%j-%i | while read -r name; do mkdir -p {BASE}/slurm-logs/$name; done"
    lab.run_on("login1", ["sh", "-c", text], user=ALICE.name, check=True)


@benchmark("sdk-vs-tao", unit="x", limit=1 / 10)
def sdk_vs_tao() -> Reading:
    """The slowest of submit, status, logs and cancel by towline.tao, in calls of nvidia-tao-sdk 7.2.0; both warm."""
    parts: dict[str, float] = {}
    with _sides() as (subject, baseline):
        for name, rounds in CALLS.items():
            found = compare(subject.call(name), baseline.call(name), rounds=rounds)
            parts |= {f"{name}_ms": found.parts["subject_ms"], f"{name}_tao_ms": found.parts["baseline_ms"]}
    ratios = [parts[f"{name}_ms"] / parts[f"{name}_tao_ms"] for name in CALLS]
    return Reading(max(ratios), parts)
