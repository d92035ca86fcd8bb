"""How long the command line takes to say anything, in starts of the bare interpreter."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from harness.bench.registry import Reading, benchmark
from harness.bench.timing import compare

TOWLINE = str(Path(sys.executable).parent / "towline")
ROUNDS = 31


@benchmark("cli-start", unit="x", limit=6)
def cli_start() -> Reading:
    """`towline --help` against `python -c pass`: heavy imports come late."""
    return compare(lambda: _quietly(TOWLINE, "--help"), lambda: _quietly(sys.executable, "-c", "pass"), rounds=ROUNDS)


def _quietly(*argv: str) -> None:
    subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, check=True)
