"""The lab for benchmarks and chaos runs: up while it is needed, down again only if it was down before."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

TOWLINE = str(Path(sys.executable).parent / "towline")


@contextmanager
def lab_environment(state: Path) -> Generator[dict[str, str]]:
    """An environment for `towline` and its API that knows the lab, with a state directory of its own.

    The lab is brought up when it is down, and taken down again then.
    """
    was_up = _hosts_are_up()
    _lab("up", "--install")
    try:
        state.mkdir(mode=0o700, parents=True, exist_ok=True)
        yield {**os.environ, "TOWLINE_STATE_DIR": str(state), "TOWLINE_CLUSTER": "lab"}
    finally:
        if not was_up:
            _lab("down")


def _hosts_are_up() -> bool:
    """Whether a lab runs here, perfect or not: others may have jobs on it."""
    command = [TOWLINE, "lab", "status", "--json"]
    status = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    try:
        parts = json.loads(status.stdout)["parts"]
    except (ValueError, KeyError):
        return False
    return any(part["name"] == "hosts" and not part["problem"] for part in parts)


def _lab(*arguments: str, check: bool = True) -> int:
    return subprocess.run(
        [TOWLINE, "lab", *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL if arguments[0] == "status" else sys.stderr,
        stderr=subprocess.DEVNULL if arguments[0] == "status" else None,
        check=check,
    ).returncode
