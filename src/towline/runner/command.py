"""The user's command: run by a shell, told every signal, its exit code kept."""

import os
import shutil
import signal
import subprocess
import time
from typing import List, Optional

SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)
PATIENCE = 60
"""Seconds in which what a command has started may end after it, when it was told to stop."""

_HEAD = "trap 'exit $?' TERM INT HUP USR1 USR2; "
"""A shell that is signalled ends at once and leaves its program alone; with a trap it ends after that, with its code.
The program itself does not inherit the trap. It stands before the first line, so that lines keep their numbers."""


def run(text: str, folder: str) -> int:
    """Run shell text, by bash where the image has it, and wait for its end.

    It gets a session of its own, so that a signal reaches all of its programs.

    Args:
        text: the command.
        folder: a private directory for the script: a text of any size is no argument.

    Returns:
        Its exit code; 128 and the signal's number when a signal ended it.

    Raises:
        OSError: it could not be started.
    """
    script = os.path.join(folder, "command")
    with open(script, "w", encoding="utf-8", errors="surrogateescape") as file:
        file.write(_HEAD + text.rstrip("\n") + "\n")
    shell = shutil.which("bash") or "/bin/sh"
    told = _Told()
    code = told.wait_for(subprocess.Popen([shell, script], start_new_session=True))
    return code if code >= 0 else 128 - code


class _Told:
    """Passes signals on to a command, also those that came before it was there."""

    def __init__(self) -> None:
        self._command: Optional["subprocess.Popen[bytes]"] = None
        self._came: List[int] = []
        for number in SIGNALS:
            if number in (signal.SIGINT, signal.SIGTERM) or signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, self._tell)

    def _tell(self, number: int, _frame: object) -> None:
        self._came.append(number)
        if self._command is not None:
            self._send(self._command, number)

    def wait_for(self, command: "subprocess.Popen[bytes]") -> int:
        """The command's return code; when it was told to stop, all that it started gets some time to end, too.

        Later signals no longer end this program, which then takes the outputs away.
        """
        self._command = command
        for number in tuple(self._came):
            self._send(command, number)
        code = command.wait()
        end = time.monotonic() + PATIENCE
        while self._came and _is_alive(command.pid) and time.monotonic() < end:
            time.sleep(0.2)
        return code

    def _send(self, command: "subprocess.Popen[bytes]", number: int) -> None:
        try:
            os.killpg(command.pid, number)
        except OSError:
            pass  # it has ended


def _is_alive(group: int) -> bool:
    try:
        while os.waitpid(-group, os.WNOHANG)[0]:  # of those that are this process's, where it is the container's first
            pass
    except ChildProcessError:
        pass
    try:
        os.killpg(group, 0)
    except OSError:
        return False
    return True
