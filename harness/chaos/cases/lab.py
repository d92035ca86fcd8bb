"""Faults of the lab come and go at random: a reset leaves it healthy, and going down it leaves nothing."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import tempfile
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from harness.chaos.registry import Run, Story, chaos
from harness.lab import TOWLINE, lab_environment
from towline.lab import Lab, namespaces, profile
from towline.lab.faults.fault import Argument
from towline.lab.faults.registry import FAULTS
from towline.lab.layout import FAKE_GPUS, GPU_NODES, LOGINS, NODES, UPLINK

MOST_SWITCHES = 6
REFUSED = 71
"""Exit status of `towline lab fault` when a fault stands in another's way, and says so."""
VALUES = {
    "NODE": [node.name for node in GPU_NODES],
    "HOST": [login.name for login in LOGINS],
    "CODE": ["31", "48", "79", "94"],
    "GPU": ["0", "7"],
    "K": ["0", "1", "5"],
    "KIB": ["1", "4096"],
    "MS": ["1", "200", "15000"],
    "S": ["1", "2:50:5"],
    "SECONDS": ["-86400", "5"],
    "SHELL": ["sh", "bash"],
}
LASTING = (["disk-full"], ["queue-limit", "0"], ["login-banner"], ["hostkey-change", "login1"], ["node-crash", "node1"])
WORK = "for n in 1 2 3; do sbatch -J chaos-lab -o /dev/null -N2 --requeue --wrap 'srun sleep 600'; done"
PROBE = ["timeout", "60", "srun", "-J", "chaos-lab", "-N4", "hostname"]


@chaos("lab", runs=20)
@contextmanager
def lab() -> Generator[Story]:
    """Random faults on and off, then a reset: the lab is healthy each time, and going down it leaves nothing."""
    with tempfile.TemporaryDirectory() as scratch, lab_environment(Path(scratch)) as env:
        yield _Breaking(env)


class _Breaking(Story):
    def __init__(self, env: dict[str, str]) -> None:
        self._env = env

    def play(self, run: Run) -> Sequence[str]:
        self._towline("shell", "login1", "--", "sh", "-c", WORK)
        on: list[list[str]] = []
        for _ in range(run.random.randint(1, MOST_SWITCHES)):
            self._switch(run, on)
        held = "; ".join(" ".join(words) for words in on)
        done = self._towline("reset")
        if done.returncode:
            return [f"with {held}: reset failed: {done.stdout}{done.stderr}"]
        return [f"with {held}: {sentence}" for sentence in self._ailments()]

    def settle(self) -> Sequence[str]:
        """Down with faults that would outlast it, and up again, since whoever had the lab up wants it so."""
        for words in LASTING:
            self._towline("fault", words[0], "on", *words[1:])
        down = self._towline("down")
        left = [down.stderr] if down.returncode else _left_over()
        up = self._towline("up")
        return [*left, up.stderr] if up.returncode else [*left, *self._ailments()]

    def _switch(self, run: Run, on: list[list[str]]) -> None:
        """Turn a fault off that is on, or one on; what is on is kept in `on`."""
        if on and run.random.random() < 0.3:
            words = on.pop(run.random.randrange(len(on)))
            action = "off"
        else:
            name = run.random.choice(sorted(FAULTS))
            words = [name, *(_value(argument, run.random) for argument in FAULTS[name].arguments)]
            action = "on"
        done = self._towline("fault", words[0], action, "--", *words[1:])
        run.seen[action if done.returncode == 0 else "refused"] += 1
        if done.returncode not in (0, REFUSED):
            raise SystemExit(f"{' '.join(words)} {action} ended with {done.returncode}:\n{done.stderr}")
        if (action == "on") == (done.returncode == 0):
            on.append(words)
        print(f"   {action} {' '.join(words)} {done.stderr.strip()}", file=sys.stderr)

    def _ailments(self) -> list[str]:
        """What a healthy lab does not have."""
        done = self._towline("status", "--json")
        status: dict[str, Any] = json.loads(done.stdout)
        found = [f"{part['name']}: {part['problem']}" for part in status["parts"] if not part["up"]]
        found += [f"{fault} is still on" for fault in status["faults"]]
        found += [f"{node} is {state}" for node, state in _unusable(status["nodes"]).items()]
        if queue := self._towline("shell", "login1", "--", "squeue", "-h", "-n", "chaos-lab").stdout:
            found.append(f"still queued: {queue}")
        probe = self._towline("shell", "login1", "--", *PROBE)
        if sorted(probe.stdout.split()) != [node.name for node in GPU_NODES]:
            found.append(f"a job on four nodes said: {probe.stdout}{probe.stderr}")
        return found

    def _towline(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [TOWLINE, "lab", *arguments],
            env=self._env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )


def _value(argument: Argument, chance: random.Random) -> str:
    return chance.choice(VALUES[argument.name])


def _unusable(nodes: dict[str, str]) -> dict[str, str]:
    bad = ("down", "drain", "fail", "unknown")
    states = {node.name: nodes.get(node.name, "unknown") for node in NODES}
    return {name: state for name, state in states.items() if state.startswith(bad)}


def _left_over() -> list[str]:
    """What of the lab is on this machine, though it is down."""
    root = Lab.default().paths.root
    mounts = [line.split(" ")[1] for line in Path("/proc/self/mounts").read_text().splitlines() if str(root) in line]
    devices = [str(path) for path in FAKE_GPUS if path.exists()]
    devices += [UPLINK] if f"{UPLINK}:" in Path("/proc/self/net/dev").read_text() else []
    groups = [str(path) for path in Path("/sys/fs/cgroup").glob("*/slurm_*")]
    records = [
        str(path) for name in ("on", "conf") for path in (root / "state" / "faults" / name).rglob("*") if path.is_file()
    ]
    holders = [f"process {pid}" for pid in namespaces.all_holders()]
    profiles = [str(profile.path())] if profile.path().exists() else []
    return [f"{one} is left" for one in (*mounts, *devices, *groups, *records, *holders, *profiles)]
