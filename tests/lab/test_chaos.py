"""The short form of the chaos runs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.usefixtures("lab")
@pytest.mark.parametrize(
    ("name", "runs"), [("kill-client", 3), ("submit", 10), ("matrix-short", 2), ("follow", 4), ("stage", 1)]
)
def test_nothing_that_must_hold_is_violated(name: str, runs: int) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "harness.chaos", name, "--runs", str(runs)],
        cwd=ROOT,
        env=dict(os.environ),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert (found := json.loads(done.stdout))["runs"] == runs, found
