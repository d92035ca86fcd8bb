"""The command in a shell of its own: its code, and the signals that it is told."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

RUN = "import sys; from towline.runner.command import run; sys.exit(run(sys.argv[1], sys.argv[2]))"
WAITS = """
import signal, sys
def told(number, _):
    print("told", number, flush=True)
    sys.exit(5)
for number in (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1):
    signal.signal(number, told)
print("begun", flush=True)
signal.pause()
"""


@pytest.fixture
def waits(tmp_path: Path) -> str:
    (tmp_path / "waits.py").write_text(WAITS)
    return f"{sys.executable} {tmp_path}/waits.py"


def start(command: str, folder: Path) -> subprocess.Popen[str]:
    words = [sys.executable, "-c", RUN, command, str(folder)]
    return subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@pytest.mark.parametrize(
    ("command", "code"), [("true", 0), ("exit 7", 7), ("kill -9 $$", 137), ("false\n", 1), ("nothing-like-that", 127)]
)
def test_its_code_is_kept(command: str, code: int, tmp_path: Path) -> None:
    running = start(command, tmp_path)
    running.communicate(timeout=60)
    assert running.returncode == code


def test_lines_have_the_numbers_that_people_know(tmp_path: Path) -> None:
    _, err = start("true\nnothing-like-that", tmp_path).communicate(timeout=60)
    assert "line 2: nothing-like-that" in err or ": 2: nothing-like-that" in err


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGUSR1])
@pytest.mark.parametrize("around", ["{}", "{}; echo not reached", "{} & wait; exit 5"])
def test_a_signal_reaches_the_program_in_the_shell(
    number: signal.Signals, around: str, waits: str, tmp_path: Path
) -> None:
    running = start(around.format(waits), tmp_path)
    assert running.stdout is not None
    assert running.stdout.readline() == "begun\n"
    running.send_signal(number)
    out, _ = running.communicate(timeout=60)
    assert out == f"told {number.value}\n"
    assert running.returncode in (5, 128 + number)


def test_it_can_have_traps_of_its_own(waits: str, tmp_path: Path) -> None:
    running = start(f"trap 'echo trapped' USR1; {waits}; echo code $?", tmp_path)
    assert running.stdout is not None
    assert running.stdout.readline() == "begun\n"
    running.send_signal(signal.SIGUSR1)
    out, _ = running.communicate(timeout=60)
    assert out == "told 10\ntrapped\ncode 5\n"
    assert running.returncode == 0
