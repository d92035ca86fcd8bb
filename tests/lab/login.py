"""Running commands on a login host as a user of the cluster would."""

from __future__ import annotations

import subprocess

from towline.lab import Lab

SECONDS = 30
"""For so long a command may take; a step that hangs fails its test and no more."""


def on_login(lab: Lab, *argv: str, script: str = "") -> subprocess.CompletedProcess[str]:
    """Runs a command, or a shell script, as alice on login1 in her folder of the shared disk."""
    command = ["sh", "-c", script] if script else list(argv)
    at = ["sh", "-c", 'mkdir -p "$1"; cd "$1"; shift; exec "$@"', "sh", "/lustre/alice/runtime-tests"]
    return lab.run_on("login1", [*at, "timeout", str(SECONDS), *command], user="alice", timeout=SECONDS + 15)


def srun(lab: Lab, *argv: str) -> subprocess.CompletedProcess[str]:
    """Runs a step in a short allocation of its own."""
    return on_login(lab, "srun", "--job-name=labtest-runtime", "--time=2", "--immediate=20", *argv)
