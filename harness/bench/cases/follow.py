"""A log that grows fast, followed by `towline logs -f`: nothing is lost, and the memory stays small."""

from __future__ import annotations

import filecmp
import os
import subprocess
import tempfile
import time
from pathlib import Path

from harness.bench.registry import Reading, benchmark
from harness.lab import TOWLINE, lab_environment
from towline.lab import Lab

RATE = 50
"""Megabytes in a second."""
SECONDS = 10
WRITES = f"""
exec python3 -c '
import sys, time
line = b"epoch 1 step 1 loss 0.5 " * 5 + b"\\n"
block = line * (250_000 // len(line) + 1)
begin, count = time.monotonic(), 0
while count < {RATE * SECONDS} * 10**6:
    sys.stdout.buffer.write(b"%d\\n" % count + block)
    sys.stdout.buffer.flush()
    count += len(block)
    time.sleep(max(0, begin + count / {RATE * 10**6} - time.monotonic()))
print(time.monotonic() - begin, file=sys.stderr)
'
"""
WORDS = ("--name", "bench-follow", "--partition", "cpu", "--log-per", "rank", "--time", "10m")


@benchmark("follow", unit="MB", limit=100)
def follow() -> Reading:
    """Most memory of `towline logs -f` on a log that grows at 50 MB/s; what it printed is the log."""
    with tempfile.TemporaryDirectory() as scratch, lab_environment(Path(scratch, "state")) as env:
        run = [TOWLINE, "run", "--detach", *WORDS, "--shell", WRITES]
        job = subprocess.run(run, env=env, capture_output=True, text=True, check=True).stdout.strip()
        printed = Path(scratch, "printed")
        with printed.open("wb") as file:
            process = subprocess.Popen([TOWLINE, "logs", "-f", "--rank", "0", job], env=env, stdout=file)
            behind, rate = _watch(process.pid, printed, job)
            _, status, usage = os.wait4(process.pid, 0)
        assert status == 0, status
        log = _log(job)
        assert log, "the log is gone"
        assert filecmp.cmp(log, printed, shallow=False), "what was printed is not the log"
        parts = {"most_behind_MB": behind, "log_MB_per_s": rate, "log_MB": log.stat().st_size / 1e6}
        return Reading(usage.ru_maxrss / 1e3, {**parts, "cpu_s": usage.ru_utime + usage.ru_stime})


def _log(job: str) -> Path | None:
    found = Lab.default().paths.lustre.glob(f"alice/towline/jobs/{job}/attempts/1/ranks/0-*.out")
    return next(found, None)


def _watch(pid: int, printed: Path, job: str) -> tuple[float, float]:
    """How far the printed text was behind the log at most, and how fast the log grew, in MB and MB/s."""
    behind = size = 0
    begun = ended = 0.0
    while Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z":
        if log := _log(job):
            now = log.stat().st_size
            if now > size:
                begun, ended, size = begun or time.monotonic(), time.monotonic(), now
            behind = max(behind, now - printed.stat().st_size)
        time.sleep(0.1)
    return behind / 1e6, size / 1e6 / max(ended - begun, 0.1)
