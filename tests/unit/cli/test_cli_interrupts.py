"""Ctrl-C while following, and what a terminal shows: in a process of its own, with real signals."""

from __future__ import annotations

import contextlib
import os
import pty
import signal
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


@contextlib.contextmanager
def following(*args: str, stdout: int = subprocess.PIPE, **env: str) -> Generator[subprocess.Popen[bytes]]:
    argv = [sys.executable, "-W", "error", "-m", "tests.unit.cli.following", *args]
    process = subprocess.Popen(
        argv, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=stdout, stderr=subprocess.PIPE, env={**os.environ, **env}
    )
    with process:
        try:
            yield process
        finally:
            process.kill()


def read_until(process: subprocess.Popen[bytes], text: bytes) -> bytes:
    """What the process writes to stderr up to a line with the text; fails when it ends before."""
    assert process.stderr
    seen = b""
    while text not in seen:
        line = process.stderr.readline()
        assert line, seen.decode()
        seen += line
    return seen


def started(process: subprocess.Popen[bytes]) -> None:
    assert process.stdout
    assert b"started" in process.stdout.readline()


def test_the_first_ctrl_c_detaches_and_says_how_to_come_back() -> None:
    with following("0.05", "run", "--cluster", "far", "--", "x") as process:
        started(process)
        process.send_signal(signal.SIGINT)
        said = read_until(process, b"press Ctrl-C again").decode()
        assert process.wait() == 130
        assert process.stderr
        assert process.stderr.read() == b""
    assert "towline logs -f --cluster far k3v9x2m4q" in said
    assert "towline cancel --cluster far k3v9x2m4q" in said


def test_a_second_ctrl_c_cancels_the_job() -> None:
    with following("60", "run", "--", "x") as process:
        started(process)
        process.send_signal(signal.SIGINT)
        read_until(process, b"press Ctrl-C again")
        process.send_signal(signal.SIGINT)
        read_until(process, b"job k3v9x2m4q was cancelled")
        assert process.wait() == 130


def test_both_are_events_for_programs() -> None:
    with following("60", "run", "--json", "--", "x") as process:
        assert process.stdout
        while b"an open line" not in process.stdout.readline():
            pass
        process.send_signal(signal.SIGINT)
        assert b'"event": "detached"' in process.stdout.readline()
        read_until(process, b"press Ctrl-C again")
        process.send_signal(signal.SIGINT)
        last = process.stdout.read()
        assert b'"event": "cancelled"' in last
        assert b'"exit": {"code": 130, "whose": "towline"}' in last
        assert process.wait() == 130


def test_ctrl_c_while_reading_logs_ends_the_reading_only() -> None:
    with following("60", "logs", "-f", "41") as process:
        started(process)
        process.send_signal(signal.SIGINT)
        assert process.wait() == 130
        assert process.stderr
        said = process.stderr.read().decode()
    assert "Traceback" not in said
    assert "cancel" not in said


def test_ctrl_c_during_a_submission_says_how_to_find_out() -> None:
    with following("stuck", "run", "--", "x") as process:
        assert process.stdout
        assert process.stdout.readline() == b"submitting\n"
        process.send_signal(signal.SIGINT)
        assert b"towline ps" in read_until(process, b"interrupted while job k3v9x2m4q was being submitted")
        assert process.wait() == 130


@pytest.mark.parametrize(("env", "news_colour"), [({}, True), ({"NO_COLOR": "1"}, False)])
def test_a_terminal_gets_colours_and_nothing_else_that_steers_it(env: dict[str, str], news_colour: bool) -> None:
    terminal, end = os.openpty()
    argv = [sys.executable, "-m", "tests.unit.cli.following", "0.05", "run", "--", "x"]
    base = {name: value for name, value in os.environ.items() if name != "NO_COLOR"}
    with subprocess.Popen(
        argv, cwd=ROOT, stdin=end, stdout=end, stderr=end, env={**base, "TERM": "xterm", **env}
    ) as it:
        os.close(end)
        seen = _read_terminal(terminal, b"an open line")
        it.send_signal(signal.SIGINT)
        seen += _read_terminal(terminal, None)
        assert it.wait() == 130
    os.close(terminal)
    assert b"\x1b[31mstarted\r\n" in seen
    assert b"\x1b[2J" not in seen
    assert b"an open line\x1b[0m\r\n" in seen
    assert b"nodes are busy (0s)" in seen
    assert (b"\x1b[2mtowline: job k3v9x2m4q is waiting" in seen) is news_colour


def _read_terminal(terminal: int, text: bytes | None) -> bytes:
    """What appears on the terminal up to the text, or until its last writer is gone."""
    seen = b""
    while text is None or text not in seen:
        try:
            data = os.read(terminal, 4096)
        except OSError:  # EIO: nobody has the other end open any more
            break
        seen += data
    return seen


def test_ctrl_c_ends_a_question_at_once(tmp_path: Path) -> None:
    terminal, stdin = pty.openpty()
    argv = [sys.executable, "-m", "towline", "setup", "new"]
    env = {**os.environ, "TOWLINE_CONFIG_DIR": str(tmp_path)}
    with subprocess.Popen(argv, cwd=ROOT, stdin=stdin, stdout=stdin, stderr=stdin, env=env) as process:
        try:
            said = b""
            while b"Login hosts" not in said:
                said += os.read(terminal, 4096)
            for _ in range(30):  # one that comes before the prompt waits for a key is not heard by Python's `input`
                process.send_signal(signal.SIGINT)
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(timeout=2)
                    break
            assert process.returncode == 130
        finally:
            process.kill()
    os.close(stdin)
    os.close(terminal)
    assert not list(tmp_path.iterdir())
