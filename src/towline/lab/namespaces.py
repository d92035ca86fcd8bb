"""The lab's hosts: one set of namespaces each, held by one process.

A host is nothing but its first process (`scripts/host-boot.sh`). Network devices, mounts and every process of the host
end with it, so a host that is killed leaves nothing, and there is no named namespace or mount to clean up.
A holder is recognised by a mark in its environment, never by a pid alone.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import IO

from towline.lab import process
from towline.lab.errors import LabError
from towline.lab.layout import HOSTS, Host, Layout

MARK = "TOWLINE_LAB_HOLDER"
_BOOT_SECONDS = 20
_LOGGED = 'log=$1; shift; exec "$@" </dev/null >>"$log" 2>&1'


def holder(layout: Layout, host: Host) -> int | None:
    """The pid, as this machine sees it, of the process that holds a host; None when the host is down."""
    try:
        pid = int(_pid_file(layout, host).read_text())
    except (OSError, ValueError):
        return None
    return pid if process.environment_value(pid, MARK) == _mark(layout, host) else None


def require(layout: Layout, host: Host) -> int:
    """Like `holder`.

    Raises:
        LabError: the host is down.
    """
    pid = holder(layout, host)
    if pid is None:
        raise LabError(f"The lab's host {host.name} is not up.", fix="Run `towline lab up`.")
    return pid


def all_holders() -> dict[int, str]:
    """Every process that holds a host of a lab on this machine, with that lab's folder.

    A lab in a container with a network of its own is on another machine, although its processes can be seen from here.
    """
    marked = ((pid, process.environment_value(pid, MARK).split("|")) for pid in process.pids())
    return {pid: mark[0] for pid, mark in marked if mark[-1] == _machine()}


def boot(layout: Layout, hosts: Sequence[Host]) -> None:
    """Start hosts, all at the same time, and wait until each has its name and files.

    Raises:
        LabError: one did not come up; the end of what it said is in the message.
    """
    started = [(host, _launch(layout, host)) for host in hosts]
    for host, child in started:
        _await_ready(layout, host, child)


def halt(layout: Layout, hosts: Sequence[Host]) -> None:
    """Take hosts away as a power cut would, with everything that runs in them."""
    held = [pid for host in hosts if (pid := holder(layout, host)) is not None]
    process.kill(held)
    for host in hosts:
        _pid_file(layout, host).unlink(missing_ok=True)


def halt_strays(layout: Layout) -> None:
    """Take away what the record no longer knows of: hosts half started, or started by an `up` that was killed."""
    known = {holder(layout, host) for host in _hosts_on_record(layout)}
    process.kill([pid for pid, root in all_holders().items() if root == str(layout.root) and pid not in known])


def command(
    layout: Layout, host: Host, argv: Sequence[str], *, user: str = "root", own_files: bool = True
) -> list[str]:
    """The command line that, run as root on this machine, runs `argv` on a lab host as one of its users.

    It starts in the user's home with a login's environment, and sees the host's files, or else this machine's. Raises
    `LabError` when the host is down.
    """
    files = ["--mount"] if own_files else []
    enter = ["nsenter", "-t", str(require(layout, host)), *files, "--uts", "--ipc", "--net", "--pid"]
    become = ["setpriv", f"--reuid={user}", f"--regid={user}", "--init-groups", "--reset-env"]
    at_home = ["env", f"PATH={process.PATH}", "LC_ALL=C.UTF-8", "sh", "-c", 'cd 2>/dev/null || cd /; exec "$@"', "sh"]
    return [*enter, *become, *at_home, *argv]


def run(
    layout: Layout,
    host: Host,
    argv: Sequence[str],
    *,
    user: str = "root",
    stdin: str | None = None,
    check: bool = True,
    timeout: float = 60,
) -> subprocess.CompletedProcess[str]:
    """Run a command on a lab host to its end. Raises `LabError` as `process.run` does."""
    return process.run(command(layout, host, argv, user=user), stdin=stdin, check=check, timeout=timeout)


def spawn(
    layout: Layout, host: Host, argv: Sequence[str], *, log: Path, user: str = "root", own_files: bool = True
) -> None:
    """Start a program on a lab host that stays; what it prints is appended to `log`."""
    logged = ["sh", "-c", _LOGGED, "sh", str(log), "setsid", "-f", *argv]
    process.run(command(layout, host, logged, user=user, own_files=own_files), check=False, timeout=60)


def run_logged(layout: Layout, host: Host, argv: Sequence[str], *, log: Path, user: str = "root") -> int:
    """Run a command on a lab host to its end, what it prints appended to `log`; its exit status."""
    logged = ["sh", "-c", _LOGGED, "sh", str(log)]
    return run(layout, host, [*logged, *argv], user=user, check=False).returncode


def root_of(layout: Layout, host: Host) -> Path:
    """The host's file system as this machine can reach it while the host is up."""
    return Path("/proc") / str(require(layout, host)) / "root"


def find(layout: Layout, host: Host, program: str) -> list[int]:
    """The processes of a host with that short name, oldest first, as this machine numbers them."""
    held = holder(layout, host)
    if held is None:
        return []
    inside = process.namespace(held, "pid")
    found = [
        pid for pid in process.pids() if process.name_of(pid) == program and process.namespace(pid, "pid") == inside
    ]
    return sorted(found, key=process.started)


def prepare(layout: Layout, host: Host) -> None:
    """Make the folders of a host about to start; its /tmp is emptied, as after a boot."""
    own = layout.own(host)
    for name in ("tmp", "var-tmp"):
        shutil.rmtree(own / name, ignore_errors=True)
    for name, mode in (("tmp", 0o1777), ("var-tmp", 0o1777), ("containers", 0o1777), ("root", 0o700), ("log", 0o755)):
        (own / name).mkdir(parents=True, exist_ok=True)
        (own / name).chmod(mode)
    (own / "hostname").write_text(f"{host.name}\n")
    (own / "etc").mkdir(mode=0o755, exist_ok=True)
    (own / "etc" / "ld.so.preload").write_text(preloaded())


def preloaded() -> str:
    """The libraries that every program of this machine loads (ld.so(8)), a line each; none on most."""
    machine = Path("/etc/ld.so.preload")
    return machine.read_text() if machine.exists() else ""


def _launch(layout: Layout, host: Host) -> subprocess.Popen[str]:
    prepare(layout, host)
    script = str(layout.bin / "host-boot.sh")
    # The first child of a shell in a new PID namespace is that namespace's first process.
    outer = ["sh", "-c", 'sh "$@" & echo "pid $!"', "sh", script, str(layout.root), host.name, host.role]
    with _log(layout, host).open("w") as log:
        return subprocess.Popen(
            ["unshare", "--net", "--uts", "--ipc", "--mount", "--pid", *outer],
            env={"PATH": process.PATH, MARK: _mark(layout, host)},
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            start_new_session=True,
        )


def _await_ready(layout: Layout, host: Host, child: subprocess.Popen[str]) -> None:
    pid, ready = _hear_out(child.stdout)
    child.wait(_BOOT_SECONDS)
    if pid is None or not ready:
        raise LabError(f"The host {host.name} did not start.", why=process.tail(_log(layout, host)))
    record = _pid_file(layout, host)
    record.parent.mkdir(parents=True, exist_ok=True)
    record.write_text(f"{pid}\n")


def _hear_out(stdout: IO[str] | None) -> tuple[int | None, bool]:
    pid, ready = None, False
    if stdout is None:
        return pid, ready
    with stdout:
        for line in stdout:
            if line.startswith("pid "):
                pid = int(line[4:])
            ready = ready or line == "ready\n"
    return pid, ready


def _hosts_on_record(layout: Layout) -> list[Host]:
    return [host for host in HOSTS if _pid_file(layout, host).exists()]


def _pid_file(layout: Layout, host: Host) -> Path:
    return layout.run / "hosts" / host.name


def _log(layout: Layout, host: Host) -> Path:
    return layout.log / f"host-{host.name}.log"


def _mark(layout: Layout, host: Host) -> str:
    return f"{layout.root}|{host.name}|{_machine()}"


def _machine() -> str:
    return str(process.namespace(os.getpid(), "net"))
