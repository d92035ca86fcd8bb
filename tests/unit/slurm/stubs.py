"""Slurm's commands as small programs with their state in files, and a login host's way of running a script."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

from towline.slurm.calls import Call

PROGRAMS = Path(__file__).parent / "programs"
SHELL = "/bin/sh"


@dataclass(frozen=True)
class Ran:
    """How a script ended."""

    code: int
    out: str
    err: str


class Slurm:
    """A Slurm of stubs: jobs are directories `job.<id>` with files name, row (squeue) and runs (sacct)."""

    def __init__(self, home: Path) -> None:
        self.state = home / "slurm"
        self.bin = home / "bin"
        self.state.mkdir()
        self.bin.mkdir()
        for program in PROGRAMS.iterdir():
            text = program.read_text().replace("@STATE@", str(self.state))
            (self.bin / program.name).write_text(text)
            (self.bin / program.name).chmod(0o755)

    def set(self, **settings: str) -> None:
        """Write settings that the stubs read: sbatch_mode, squeue_fails, sacct_fails …"""
        for name, value in settings.items():
            (self.state / name).write_text(value)

    def clear(self, *names: str) -> None:
        for name in names:
            (self.state / name).unlink()

    def add(self, job_id: int, name: str, row: str = "", runs: str = "") -> None:
        """A job; `row` is squeue's line after the id, `runs` are sacct's lines after the id."""
        job = self.state / f"job.{job_id}"
        job.mkdir()
        (job / "name").write_text(name + "\n")
        if row:
            (job / "row").write_text(f"{job_id}|{row}\n")
        if runs:
            (job / "runs").write_text("".join(f"{job_id}|{run}\n" for run in runs.splitlines()))

    @property
    def jobs(self) -> list[int]:
        return sorted(int(path.name.removeprefix("job.")) for path in self.state.glob("job.*"))

    def calls(self, program: str) -> list[str]:
        """The command lines that the program got so far."""
        log = self.state / f"{program}.calls"
        return log.read_text().splitlines() if log.exists() else []

    def environment(self, **more: str) -> dict[str, str]:
        return {"PATH": f"{self.bin}:{os.environ['PATH']}", "HOME": str(self.state), "SHELL": SHELL, **more}

    def start(self, call: Call, where: Path, **more: str) -> subprocess.Popen[str]:
        """Start a call as the remote room does: in a fresh private directory that holds its files."""
        where.mkdir()
        for name, content in call.files.items():
            (where / name).parent.mkdir(parents=True, exist_ok=True)
            (where / name).write_bytes(content if isinstance(content, bytes) else content.read_bytes())
        script = where / ".script"
        script.write_text(call.script)
        return subprocess.Popen(
            [SHELL, str(script), *call.args],
            cwd=where,
            env=self.environment(**more),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
        )

    def run(self, call: Call, where: Path, **more: str) -> Ran:
        return ended(self.start(call, where, **more))


def ended(process: subprocess.Popen[str]) -> Ran:
    """Wait for a started call."""
    out, err = process.communicate(timeout=60)
    return Ran(process.returncode, out, err)
