"""The `towline` command as a user runs it, in processes of its own with a state directory of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any

PATIENCE = 180.0
"""Seconds after which a command counts as hung."""

COMMAND = (str(Path(sys.executable).with_name("towline")),)


@dataclass(frozen=True)
class Done:
    """What a command left."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """Its stdout as one JSON document."""
        return json.loads(self.out)

    @property
    def lines(self) -> list[Any]:
        """Its stdout as JSON lines."""
        return [json.loads(line) for line in self.out.splitlines()]


class Process(subprocess.Popen[str]):
    """A command that does not outlive a test that failed: nobody would end it, and its context manager waits."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None:
            self.kill()
        super().__exit__(kind, error, trace)


@dataclass
class Terminal:
    """Runs `towline` commands against the lab."""

    state: Path
    environment: dict[str, str] = field(default_factory=dict[str, str])

    def env(self) -> dict[str, str]:
        """The environment of the commands."""
        return {**os.environ, "TOWLINE_STATE_DIR": str(self.state), "TOWLINE_CLUSTER": "lab", **self.environment}

    def start(self, *words: str) -> Process:
        """Begin a command."""
        pipe = subprocess.PIPE
        return Process(
            [*COMMAND, *words], env=self.env(), stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe, text=True
        )

    def __call__(self, *words: str, timeout: float = PATIENCE) -> Done:
        """Run a command to its end."""
        with self.start(*words) as process:
            try:
                out, err = process.communicate(timeout=timeout)
            except BaseException:
                process.kill()
                raise
        return Done(process.returncode, out, err)

    def submit(self, *words: str) -> str:
        """Run `towline run --detach` and return the job's id."""
        done = self("run", "--detach", "--json", *words)
        assert done.code == 0, done
        return done.json["job"]["id"]

    def job(self, reference: str) -> dict[str, Any]:
        """The job as `towline status --json` shows it."""
        done = self("status", "--json", reference)
        assert done.code == 0, done
        return done.json["jobs"][0]

    def until(self, reference: str, condition: Callable[[dict[str, Any]], bool], looks: int = 120) -> dict[str, Any]:
        """Look at the job until the condition holds; each look is a whole command."""
        for _ in range(looks):
            job = self.job(reference)
            if condition(job):
                return job
        raise AssertionError(f"after {looks} looks still: {job}")  # pyright: ignore[reportPossiblyUnboundVariable]
