"""Jobs that are watched: by one process for all, in every state, and with what they say themselves."""

from __future__ import annotations

import contextlib
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.lab.terminal import Terminal
from towline.lab import Lab

PATIENCE = 120.0


@pytest.fixture
def towline(lab: Lab, tmp_path: Path) -> Terminal:
    return Terminal(tmp_path / "state")


def until(what: str, condition: Callable[[], object]) -> None:
    """Wait for something that comes by itself."""
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, what
        time.sleep(0.2)


def lease(towline: Terminal) -> tuple[str, float]:
    """Who asks the scheduler, and when it was answered last."""
    with contextlib.closing(sqlite3.connect(towline.state / "store.db")) as db:
        row = db.execute("SELECT owner, polled FROM leases WHERE cluster = 'lab'").fetchone()
    return (row[0], row[1]) if row else ("", 0.0)


def test_another_process_asks_when_the_one_that_did_is_killed(towline: Terminal) -> None:
    towline.environment["TOWLINE_POLL_INTERVAL"] = "2"
    job = towline.submit("--", "sleep", "300")
    with towline.start("wait", job) as first, towline.start("wait", job) as second:
        until("nobody asks", lambda: lease(towline)[1])
        owner, polled = lease(towline)
        until("nobody asks again", lambda: lease(towline)[1] > polled)
        assert lease(towline)[0] == owner
        lock = next(towline.state.glob("asking-*.lock"))
        asking = next(each for each in (first, second) if _has_open(each.pid, lock))
        other = second if asking is first else first
        asking.kill()
        until("nobody has taken over", lambda: lease(towline)[0] not in ("", owner) and lease(towline)[1] > polled)
        assert towline("cancel", job).code == 0
        assert other.wait(PATIENCE) == 72


def _has_open(pid: int, path: Path) -> bool:
    folder = Path(f"/proc/{pid}/fd")
    return any(link.resolve() == path.resolve() for link in folder.iterdir())
