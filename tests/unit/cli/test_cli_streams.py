"""The command under streams that are closed or full, and under Ctrl-C before anything has begun."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

TOWLINE = str(Path(sys.executable).with_name("towline"))


def shell(line: str, tmp_path: Path) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": "/usr/bin:/bin", "TOWLINE_STATE_DIR": str(tmp_path), "TOWLINE_CONFIG_DIR": str(tmp_path)}
    line = line.replace("towline", TOWLINE, 1)
    return subprocess.run(["sh", "-c", line], env=environment, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("towline version >&-", 0),
        ("towline --help >&-", 0),
        ("towline version <&-", 0),
        ("towline ps 2>&-", 78),
        ("towline ps >&- 2>&-", 78),
        ("towline bogus >&-", 64),
        ("towline bogus 2>/dev/full", 64),
        ("towline version >/dev/full", 74),
        ("towline version >/dev/full 2>/dev/full", 74),
    ],
)
def test_streams_that_nobody_reads_change_no_exit_status(line: str, code: int, tmp_path: Path) -> None:
    done = shell(line, tmp_path)
    assert done.returncode == code, done
    assert "Traceback" not in done.stdout + done.stderr


def test_an_interrupt_while_the_command_starts_ends_it_quietly(tmp_path: Path) -> None:
    """The interrupt comes from within, at the first import after the start, where a real one once gave a traceback."""
    code = """
import builtins, os, signal, sys
imported = builtins.__import__
def interrupting(name, *rest, **named):
    if name == "towline.cli.app":
        os.kill(os.getpid(), signal.SIGINT)
    return imported(name, *rest, **named)
builtins.__import__ = interrupting
sys.argv = ["towline", "ps"]
from towline.cli.main import main
main()
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (128 + signal.SIGINT, "towline: interrupted\n")


def test_an_empty_destination_is_a_usage_error(tmp_path: Path) -> None:
    done = shell("towline results x --pull ''", tmp_path)
    assert done.returncode == 64
    assert "empty" in done.stderr
