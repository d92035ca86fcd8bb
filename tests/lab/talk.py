"""Talking to a program at a terminal: what it asks, and what a person answers."""

from __future__ import annotations

import os
import pty
import re
import subprocess
from collections.abc import Mapping, Sequence

_SECONDS = 120


def converse(argv: Sequence[str], answers: Sequence[tuple[str, str]], env: Mapping[str, str]) -> tuple[int, str]:
    """Run a program at a terminal and answer each question when it is asked.

    Args:
        argv: the program.
        answers: a pattern that the end of what is shown matches, and the line to give then; in order.
        env: its environment.

    Returns:
        its exit status, and everything that was shown.
    """
    ours, theirs = pty.openpty()
    # ssh asks for passwords at the controlling terminal only.
    with subprocess.Popen(
        ["setsid", "--ctty", "--wait", *argv], env=env, stdin=theirs, stdout=theirs, stderr=theirs
    ) as process:
        os.close(theirs)
        shown = _answer(ours, list(answers))
        status = process.wait(_SECONDS)
    os.close(ours)
    return status, shown


def _answer(terminal: int, answers: list[tuple[str, str]]) -> str:
    shown, since = "", 0
    while True:
        try:
            data = os.read(terminal, 4096)
        except OSError:  # the program has ended
            return shown
        if not data:
            return shown
        shown += data.decode(errors="replace")
        if answers and (found := re.search(rf"(?:{answers[0][0]})$", shown[since:])):
            since += found.end()
            os.write(terminal, f"{answers.pop(0)[1]}\n".encode())
