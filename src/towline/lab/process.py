"""Running programs and looking at processes, from this machine's side."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from towline.lab.errors import LabError

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_POLL_SECONDS = 0.02


def run(
    argv: Sequence[str], *, stdin: str | None = None, check: bool = True, timeout: float = 60
) -> subprocess.CompletedProcess[str]:
    """Run a program to its end with its output caught and a fixed locale.

    Raises:
        LabError: it failed (only with `check`), took longer than `timeout` seconds, or is not installed.
    """
    try:
        done = subprocess.run(
            list(argv),
            input=stdin,
            stdin=subprocess.DEVNULL if stdin is None else None,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=timeout,
            env={**os.environ, "LC_ALL": "C"},
            check=False,
        )
    except FileNotFoundError as error:
        raise LabError(f"{argv[0]} is not installed.", fix="Run `towline lab up --install`.") from error
    except subprocess.TimeoutExpired as error:
        raise LabError(f"`{_spelled(argv)}` took longer than {timeout:g} s.") from error
    if check and done.returncode != 0:
        raise LabError(f"`{_spelled(argv)}` failed with {done.returncode}.", why=(done.stderr or done.stdout).strip())
    return done


def _spelled(argv: Sequence[str]) -> str:
    spelled = " ".join(argv)
    return spelled if len(spelled) <= 120 else f"{spelled[:117]}..."


def pids() -> Iterator[int]:
    """Every process on this machine."""
    for entry in os.listdir("/proc"):
        if entry.isdecimal():
            yield int(entry)


def name_of(pid: int) -> str:
    """The short name the kernel has for a process; empty when it is gone."""
    return _read(pid, "comm").strip()


def started(pid: int) -> int:
    """When a process began, in clock ticks; its number does not tell, since numbers begin again."""
    fields = _read(pid, "stat").rpartition(")")[2].split()
    return int(fields[19]) if len(fields) > 19 else 0


def environment_value(pid: int, name: str) -> str:
    """One variable of the environment a process was started with; empty when it has none or is gone."""
    for entry in _read(pid, "environ").split("\0"):
        key, _, value = entry.partition("=")
        if key == name:
            return value
    return ""


def namespace(pid: int, kind: str) -> int:
    """The inode of one of a process's namespaces (`pid`, `net`, …); 0 when the process has ended."""
    try:
        os.stat(f"/proc/{pid}/ns/mnt")  # one that has ended and waits to be reaped still has a `pid`, and no other
        return os.stat(f"/proc/{pid}/ns/{kind}").st_ino
    except OSError:
        return 0


def kill(targets: Sequence[int], *, how: signal.Signals = signal.SIGKILL, timeout: float = 10) -> None:
    """Signal processes and wait until all of them are gone; those already gone are no error.

    Raises:
        LabError: some are still there after `timeout` seconds.
    """
    handles: dict[int, int] = {}
    for pid in targets:
        with contextlib.suppress(ProcessLookupError):
            handles[os.pidfd_open(pid)] = pid
    for handle in handles:
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(handle, how)
    try:
        _await_ends(handles, time.monotonic() + timeout)
    finally:
        for handle in handles:
            os.close(handle)


def _await_ends(handles: dict[int, int], deadline: float) -> None:
    waiting = dict(handles)
    poller = select.poll()
    for handle in waiting:
        poller.register(handle, select.POLLIN)
    while waiting:
        left = deadline - time.monotonic()
        if left <= 0:
            raise LabError(f"Processes {sorted(waiting.values())} did not end.")
        for handle, _ in poller.poll(left * 1000):
            poller.unregister(handle)
            del waiting[handle]


def until(condition: Callable[[], bool], timeout: float, what: str) -> None:
    """Wait for something that can only be asked for, not subscribed to.

    Raises:
        LabError: `what` did not happen within `timeout` seconds.
    """
    deadline = time.monotonic() + timeout
    while not condition():
        if time.monotonic() > deadline:
            raise LabError(f"{what} did not happen within {timeout:g} s.")
        time.sleep(_POLL_SECONDS)


def tail(path: Path, lines: int = 15) -> str:
    """The end of a text file; empty when it cannot be read."""
    try:
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - 64 * 1024))
            text = file.read().decode(errors="replace")
    except OSError:
        return ""
    return "\n".join(text.splitlines()[-lines:])


def _read(pid: int, what: str) -> str:
    try:
        return Path(f"/proc/{pid}/{what}").read_text(errors="replace")
    except OSError:
        return ""
