"""One job under a fault, with a client that lives beside it or with none until all is over."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

from harness.lab import TOWLINE
from towline.engine.store import Store
from towline.lab import Lab
from towline.lab.layout import ALICE
from towline.models.job import JobRecord, JobState

PATIENCE = 180.0
"""Seconds until something that must come has come; the lab's machine may be slow."""
TICKS = (
    'f=$TOWLINE_RESULTS_DIR/ticks-$TOWLINE_ATTEMPT; i=0; while [ "$i" -lt "$n" ]; do '
    'date +%s%N >>"$f"; sleep 0.5; i=$((i + 1)); done'
)
"""Work that leaves a time every half second, `n` times."""


class Unmet(Exception):
    """Something that must come did not come."""


def until(condition: Callable[[], bool], what: str, seconds: float = PATIENCE) -> None:
    """Wait until the condition holds.

    Raises:
        Unmet: it did not within so many seconds.
    """
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise Unmet(f"after {seconds:g} s still not: {what}")
        time.sleep(0.5)


@dataclass
class Play:
    """A job and what is done to it.

    Attributes:
        lab: the lab.
        env: the environment of `towline`.
        alive: whether a client follows the job from its submission on; else nobody looks until `end`.
        job: the job as `towline run --json` gave it.
        waiter: the client that follows.
        undo: what is to be taken back afterwards.
    """

    lab: Lab
    env: dict[str, str]
    alive: bool
    job: dict[str, Any] = field(default_factory=dict[str, Any])
    waiter: subprocess.Popen[str] | None = None
    undo: ExitStack = field(default_factory=ExitStack)

    # --- What a user does ---

    def submit(self, *words: str, first: int = 600, later: int = 2, command: str = "") -> None:
        """Submit a job that works for `first` half seconds at first and for `later` ones after a new start."""
        text = command or f'n={later}; [ "$TOWLINE_ATTEMPT" != 1 ] || n={first}; {TICKS}'
        options = [word for word in words if word]
        done = self.towline("run", "--detach", "--json", "--name", "chaos", *options, "--", "sh", "-c", text)
        self.job = json.loads(done)["job"]
        if self.alive:
            self.follow()

    def follow(self) -> None:
        """Have a client wait for the job."""
        self.waiter = self.begin("wait", self.job["id"])

    def begin(self, *words: str) -> subprocess.Popen[str]:
        """A command that runs beside the play."""
        pipe, nothing = subprocess.PIPE, subprocess.DEVNULL
        return subprocess.Popen([TOWLINE, *words], env=self.env, stdin=nothing, stdout=pipe, stderr=pipe, text=True)

    def submit_and_die(self) -> None:
        """Submit a job with a client that is killed once it has written down what it is about to send."""
        words = ("run", "--detach", "--name", "chaos", "--", "sleep", "300")
        client = subprocess.Popen([TOWLINE, *words], env=self.env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        try:
            until(lambda: bool(self._intended()), "the client has written its job down")
            [record] = self._intended()
            self.job = {"id": record.id, "directory": record.directory}
            until(lambda: self.exists("attempts/1"), "the submission is on its way")
            if self._intended()[0].state is not JobState.SUBMITTING:
                raise Unmet("the client was faster than its end")
        finally:
            client.kill()
            client.communicate()

    def _intended(self) -> tuple[JobRecord, ...]:
        store = Store(Path(self.env["TOWLINE_STATE_DIR"]))
        try:
            return store.jobs("lab")
        finally:
            store.close()

    def kill_client(self) -> None:
        """Kill the client that follows, if there is one, and have another follow."""
        if self.waiter:
            self.waiter.send_signal(signal.SIGKILL)
            self.waiter.communicate()
            self.follow()

    def cancel(self, *, elsewhere: bool = False) -> None:
        """Cancel the job."""
        self.towline("cancel", self.job["id"], elsewhere=elsewhere)

    def towline(self, *words: str, check: bool = True, elsewhere: bool = False) -> str:
        """What a command prints, here or on a machine with a store of its own."""
        state = self.env["TOWLINE_STATE_DIR"] + ("-elsewhere" if elsewhere else "")
        done = subprocess.run(
            [TOWLINE, *words],
            env={**self.env, "TOWLINE_STATE_DIR": state},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        if check and done.returncode:
            raise Unmet(f"towline {' '.join(words)} ended with {done.returncode}: {done.stdout}{done.stderr}")
        return done.stdout

    def status(self) -> dict[str, Any]:
        """The job as `towline status` has it."""
        found: dict[str, Any] = json.loads(self.towline("status", "--json", self.job["id"]))["jobs"][0]
        return found

    def end(self) -> dict[str, Any]:
        """The job once it is over, waited for by the client that lives, or by one that comes back now."""
        if self.waiter is None:
            until(self._has_gone, "the job has left the queue")
            self.follow()
        assert self.waiter is not None
        try:
            self.waiter.communicate(timeout=2 * PATIENCE)
        except subprocess.TimeoutExpired:
            raise Unmet(f"still {json.dumps(self.status())}") from None
        return self.status()

    # --- What is seen on the cluster itself ---

    def ask(self, script: str, host: str = "login1") -> str:
        """What a shell script of the user prints there."""
        return self.lab.run_on(host, ["sh", "-c", script], user=ALICE.name, timeout=60).stdout

    def read(self, name: str) -> str:
        """A file of the job directory; empty when it is not there."""
        return self.ask(f"cat '{self.job['directory']}'/{name} 2>/dev/null")

    def exists(self, name: str) -> bool:
        """Whether the job directory has a file or a directory of that name."""
        return self.ask(f"[ ! -e '{self.job['directory']}'/{name} ] || echo there").strip() == "there"

    def slurm_id(self) -> str:
        """Slurm's number of the first attempt."""
        return self.read("attempts/1/submit").strip()

    def started(self, attempt: int = 1) -> str:
        """The nodes of an attempt, once its work has begun."""
        until(lambda: bool(self.read(f"results/ticks-{attempt}")), f"attempt {attempt} works")
        return next(
            line.partition("=")[2]
            for line in self.read(f"attempts/{attempt}/start").splitlines()
            if line.startswith("nodes=")
        )

    def hosts(self, attempt: int = 1) -> list[str]:
        """The names of the nodes of an attempt that works."""
        return self.ask(f"scontrol show hostnames '{self.started(attempt)}'").split()

    def queued(self) -> list[str]:
        """States of the job's Slurm jobs that have not ended."""
        rows = self.ask("squeue -h -o '%j %T %r'").splitlines()
        return [row.partition(" ")[2] for row in rows if self.job["id"] in row]

    def _has_gone(self) -> bool:
        if self.queued():
            return False
        time.sleep(2)
        return not self.queued()

    def overlaps(self) -> list[str]:
        """Attempts that worked while a later one did: all nodes of the lab have one clock."""
        read = {number: self.read(f"results/ticks-{number}").split() for number in range(1, 12)}
        ticks = {number: [int(line) for line in lines if line.isdigit()] for number, lines in read.items()}
        spans = [(number, min(found), max(found)) for number, found in ticks.items() if found]
        return [f"attempts {one[0]} and {two[0]} worked at once" for one, two in pairwise(spans) if one[2] >= two[1]]

    # --- Faults ---

    def fault(self, name: str, *words: str) -> None:
        """Turn a fault on; it is off again at the end at the latest."""
        self.lab.fault_on(name, *words)
        self.undo.callback(self.mend, name, *words)

    def mend(self, name: str, *words: str) -> None:
        """Turn a fault off."""
        self.lab.fault_off(name, *words)
