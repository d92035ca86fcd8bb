"""People are told of jobs by a webhook: once, later when it was away, and nobody waits for it."""

from __future__ import annotations

import contextlib
import http.server
import json
import os
import signal
import sqlite3
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.lab.faulty import as_alice
from tests.lab.terminal import Terminal
from towline.engine.notifying.outbox import AGAIN
from towline.lab import Lab
from towline.lab.process import until


class Hook:
    """A webhook on this machine; `away` makes it refuse, `slow` lets a sender wait."""

    def __init__(self) -> None:
        self.heard: list[dict[str, Any]] = []
        self.asked = self.refused = 0
        self.away = False
        self.released = threading.Event()
        self.released.set()
        hook = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                hook.asked += 1
                hook.released.wait(60)
                if hook.away:
                    hook.refused += 1
                else:
                    hook.heard.append(json.loads(body))
                self.send_response(503 if hook.away else 200)
                self.end_headers()

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"json://127.0.0.1:{self.server.server_port}/"

    @property
    def titles(self) -> list[str]:
        return [each["title"] for each in self.heard]


@pytest.fixture
def hook() -> Iterator[Hook]:
    made = Hook()
    threading.Thread(target=made.server.serve_forever, daemon=True).start()
    yield made
    made.released.set()
    made.server.shutdown()
    made.server.server_close()


@pytest.fixture
def towline(lab: Lab, hook: Hook, tmp_path: Path) -> Terminal:
    return Terminal(tmp_path / "state", {"TOWLINE_NOTIFY": "env:HOOK", "HOOK": hook.url})


def test_an_end_is_told_once_however_many_watch_and_none_of_them_waits(towline: Terminal, hook: Hook) -> None:
    hook.released.clear()
    job = towline.submit("--name", "told", "--", "sh", "-c", "sleep 1; exit 3")
    watchers = [towline.start("wait", job) for _ in range(3)]
    for watcher in watchers:
        with watcher:
            watcher.communicate(timeout=100)  # the hook answers nobody meanwhile
    hook.released.set()
    until(lambda: bool(hook.heard), 60, "the message")
    assert towline("status", job).code == 0
    time.sleep(0.5)
    assert hook.titles == ["told failed (lab)"]
    assert "exit code 3" in hook.heard[0]["message"]
    assert hook.heard[0]["type"] == "failure"
    assert b"127.0.0.1" not in (towline.state / "store.db").read_bytes()


def test_what_a_killed_process_may_have_told_is_told_again_and_the_rest_once(towline: Terminal, hook: Hook) -> None:
    """`kill -9` between the claim of a message and its answer: nobody knows whether it went out."""
    hook.released.clear()
    first = towline.submit("--name", "first", "--", "true")
    assert towline("wait", first).code == 0
    until(lambda: hook.asked > 0, 60, "the message")
    os.kill(sender(towline.state), signal.SIGKILL)
    until(lambda: not sender(towline.state), 20, "the end of the process")
    second = towline.submit("--name", "second", "--", "true")
    assert towline("wait", second).code == 0  # starts another one, which leaves the claim to time
    hook.released.set()
    with sqlite3.connect(towline.state / "store.db") as db:
        db.execute("UPDATE notices SET due = 0 WHERE state = 'sending'")
    until(lambda: hook.titles[-1:] == ["second succeeded (lab)"], 60, "the messages")
    again = [AGAIN in each["message"] for each in hook.heard if each["title"] == "first succeeded (lab)"]
    assert again == [False, True]
    assert hook.titles.count("second succeeded (lab)") == 1


def sender(state: Path) -> int:
    """The process that sends from a state directory; 0 when there is none."""
    for each in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            words = (each / "cmdline").read_bytes().split(b"\0")
            if b"towline.engine.notifying.sending" in words and any(
                (each / "fd" / name).readlink() == state / "notify.lock" for name in os.listdir(each / "fd")
            ):
                return int(each.name)
    return 0


def test_what_could_not_be_told_is_told_later_and_in_order(towline: Terminal, hook: Hook) -> None:
    hook.away = True
    job = towline.submit("--name", "first", "--", "true")
    assert towline("wait", job).code == 0
    until(lambda: hook.refused > 0, 60, "a refused message")
    hook.away = False
    until(lambda: bool(hook.heard), 60, "the message")
    assert hook.titles == ["first succeeded (lab)"]
    (channel,) = towline("notify", "--test", "--json").json["channels"]
    assert (channel["channel"], channel["waiting"], channel["tried"]) == ("env:HOOK", 0, "sent")
    assert hook.titles[1] == "A test from Towline (lab)"
    towline.environment["HOOK"] = "json://127.0.0.1:9/"
    failed = towline("notify", "--test")
    assert failed.code == 71, failed
    assert "127.0.0.1:9" not in failed.out + failed.err


def test_of_adopted_jobs_only_what_happens_from_then_on_is_told(
    towline: Terminal, hook: Hook, lab: Lab, tmp_path: Path
) -> None:
    first = Terminal(tmp_path / "first")
    old = first.submit("--name", "old", "--", "true")
    new = first.submit("--name", "new", "--", "sh", "-c", 'until [ -e "$TOWLINE_RESULTS_DIR/go" ]; do sleep 0.2; done')
    assert first("wait", old).code == 0
    directory = first.until(new, lambda each: each["state"] == "running")["directory"]
    assert {old, new} <= {each["id"] for each in towline("adopt", "--json").json["jobs"]}
    as_alice(lab, f"touch '{directory}/results/go'")
    assert towline("wait", new).code == 0
    until(lambda: bool(hook.heard), 60, "the message")
    assert hook.titles == ["new succeeded (lab)"]
