"""Looking at a lab with faults, as somebody would who only has an account on it."""

from __future__ import annotations

import subprocess
from collections.abc import Generator
from contextlib import contextmanager

from towline.lab import Lab
from towline.lab.layout import ALICE
from towline.lab.process import until

SECONDS = 40
"""For so long a command may take; one that hangs fails its test and no more."""
TICKET = "labtest-fault"
"""The name of every job of these tests."""


@contextmanager
def fault(lab: Lab, name: str, *arguments: str) -> Generator[None]:
    """A fault that is on meanwhile."""
    lab.fault_on(name, *arguments)
    try:
        yield
    finally:
        lab.fault_off(name, *arguments)


def try_as_alice(
    lab: Lab, script: str, host: str = "login1", timeout: float = SECONDS
) -> subprocess.CompletedProcess[str]:
    """Run a shell script as alice on a host."""
    return lab.run_on(host, ["timeout", str(timeout), "sh", "-c", script], user=ALICE.name, timeout=timeout + 10)


def as_alice(lab: Lab, script: str, host: str = "login1") -> str:
    """What a shell script prints as alice, which must go well."""
    done = try_as_alice(lab, script, host)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.strip()


def ssh_command(lab: Lab, host: str, *command: str, options: tuple[str, ...] = ()) -> list[str]:
    """A command line that logs in as a client does who has the profile's key and known hosts."""
    own = ["-F", "none", "-i", str(lab.paths.key(ALICE)), "-o", f"UserKnownHostsFile={lab.paths.known_hosts}"]
    strict = ["-o", "StrictHostKeyChecking=yes", "-o", "BatchMode=yes", "-o", "ConnectTimeout=5"]
    return ["ssh", *own, *strict, *options, f"{ALICE.name}@{host}.lab", *command]


def ssh(lab: Lab, host: str, *command: str, options: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
    """Run a command over ssh to its end."""
    return subprocess.run(
        ssh_command(lab, host, *command, options=options),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )


def submit(lab: Lab, options: str, script: str = "true", host: str = "login1") -> str:
    """The id of a job that was taken."""
    wrapped = f"sbatch --parsable -J {TICKET} --output=/dev/null {options} --wrap '{script}'"
    return as_alice(lab, wrapped, host)


def job_field(lab: Lab, job: str, field: str) -> str:
    """One value of `scontrol show job`."""
    shown = as_alice(lab, f"scontrol show job {job} -o")
    return shown.partition(f" {field}=")[2].split(" ")[0]


def await_field(lab: Lab, job: str, field: str, value: str, timeout: float = 30) -> None:
    """Wait until a job's field has a value."""
    until(lambda: job_field(lab, job, field) == value, timeout, f"{field}={value} of job {job}")
