"""Jobs that are watched: by one process for all, in every state, and with what they say themselves."""

from __future__ import annotations

import contextlib
import json
import re
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.lab.faulty import fault
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


@pytest.mark.parametrize("words", [("wait",), ("logs", "-f")])
def test_an_interval_that_is_asked_for_is_how_often_slurm_is_asked(
    towline: Terminal, lab: Lab, words: tuple[str, ...]
) -> None:
    """The profile's own would be over long after `PATIENCE`, and the looks after a submission get rare before that."""
    towline.environment["TOWLINE_POLL_INTERVAL"] = "3600"
    job = towline.submit("--", "sleep", "300")
    asked, polled = _asked(lab), set[float]()
    with towline.start(*words, job, "--interval", "2") as following:
        until("it is asked too seldom", lambda: polled.add(lease(towline)[1]) or len(polled) > ROUNDS)
        assert _asked(lab) - asked >= ROUNDS
        assert towline("cancel", job).code == 0
        following.communicate(timeout=PATIENCE)


ROUNDS = 8


def _asked(lab: Lab) -> int:
    """How often slurmctld was asked for jobs so far."""
    text = lab.run_on("ctl", ["sdiag"], check=True).stdout
    return sum(int(count) for count in re.findall(r"REQUEST_JOB_(?:INFO|USER_INFO|INFO_SINGLE)\s.*count:(\d+)", text))


REPORTS = """
echo '{"date": "11/30/2026", "time": "9:00:00", "status": "STARTED"}' >>"$TOWLINE_RESULTS_DIR/status.json"
printf '{"date": "11/30/2026", "time": "9:00:01", "status": "RUNNING", "epoch": 1, "max_epoch": 3}\n{"torn' \
    >>"$TOWLINE_RESULTS_DIR/status.json"
while ! [ -e "$TOWLINE_RESULTS_DIR/go" ]; do sleep 0.2; done
echo '", "status": "SUCCESS"}' >>"$TOWLINE_RESULTS_DIR/status.json"
echo '{"date": "11/30/2026", "time": "9:00:02", "status": "FAILURE", "message": "the loss is NaN"}' \
    >>"$TOWLINE_RESULTS_DIR/status.json"
"""


def test_what_a_job_says_of_itself_is_followed_and_has_the_last_word(towline: Terminal, lab: Lab) -> None:
    towline.environment["TOWLINE_POLL_INTERVAL"] = "2"
    job = towline.submit("--status-decides", "--shell", REPORTS)
    with towline.start("events", "-f", "--json", job) as following:
        assert following.stdout is not None
        seen: list[dict[str, Any]] = []
        for line in following.stdout:
            seen.append(json.loads(line))
            if seen[-1]["event"] == "progress" and seen[-1]["details"].get("epoch") == 1:
                directory = towline.job(job)["directory"]
                lab.run_on("login1", ["touch", f"{directory}/results/go"], user="alice", check=True)
        assert following.wait(PATIENCE) == 0
    assert [each["number"] for each in seen] == sorted({each["number"] for each in seen})
    kinds = [each["event"] for each in seen]
    assert kinds[0] == "created"
    assert {"attempt", "state", "progress"} <= set(kinds)
    assert [each["state"] for each in seen if each["event"] == "state"][-2:] == ["running", "failed"]
    failed = towline.job(job)
    assert (failed["state"], failed["exit_code"], failed["attempts"][-1]["slurm_state"]) == (
        "failed",
        None,
        "COMPLETED",
    )
    assert "the loss is NaN" in failed["note"]
    assert towline("events", job, "--after", str(seen[-2]["number"]), "--json").lines == seen[-1:]


def test_watch_tells_of_a_job_until_its_end_over_a_dead_network(towline: Terminal, lab: Lab) -> None:
    towline.environment["TOWLINE_POLL_INTERVAL"] = "2"
    job = towline.submit("--", "sh", "-c", "sleep 3; exit 7")
    with fault(lab, "login-down", "login1"), fault(lab, "login-down", "login2"):
        watching = towline.start("watch", job, "--every", "1", "--json")
        assert watching.stdout is not None
        silent = next(line for line in map(json.loads, watching.stdout) if line["trouble"])
        assert not silent["job"]["ended"]
    with watching:
        lines = [json.loads(line) for line in watching.stdout]
        assert watching.wait(PATIENCE) == 7
    assert lines[-1]["exit"] == {"code": 7, "whose": "job"}


def _has_open(pid: int, path: Path) -> bool:
    folder = Path(f"/proc/{pid}/fd")
    return any(link.resolve() == path.resolve() for link in folder.iterdir())
