"""Jobs that bring data are killed at random moments: no copy that is not whole, and the next job goes on from there."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import secrets
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from pathlib import Path

from harness.chaos.registry import Run, Story, chaos
from harness.lab import TOWLINE, lab_environment
from harness.relay import Relay, counted
from harness.store import Store, open_store
from towline.lab import Lab
from towline.lab.layout import CTL, STORE_PORT, UPLINK_ADDRESS

LARGE, SMALL, COUNT = 24 << 20, 64 << 10, 32
"""Bytes of the one large file, and of each of the small ones."""
WHOLE = LARGE + SMALL * COUNT
RATE = 8 << 20
"""Bytes a second that the store sends."""
SLACK = 2 << 20
"""Bytes that may come twice: what sixteen connections had on the way, heads and listings."""
PATIENCE = 240
KILLS = ("cancel", "job", "program", "program", "node")
NODE_EVERY = 4
"""A node's crash takes half a minute to be seen, so only each fourth run has one."""


@chaos("stage", runs=16)
@contextmanager
def stage() -> Generator[Story]:
    """Jobs that stage data are killed: no half copy counts, no GPU job starts without it, the next brings the rest."""
    with tempfile.TemporaryDirectory() as scratch, lab_environment(Path(scratch, "state")) as env:
        lab = Lab.default()
        with counted(UPLINK_ADDRESS, (CTL.address, STORE_PORT), RATE) as relay:
            story = _Staging(env, lab, relay)
            try:
                yield story
            finally:
                story.clean()


class _Staging(Story):
    def __init__(self, env: dict[str, str], lab: Lab, relay: Relay) -> None:
        self._lab, self._relay = lab, relay
        self._store: Store = open_store(lab)
        self._folders: list[str] = []
        own = {**self._store.environment, "TOWLINE_S3_ENDPOINT": f"http://{UPLINK_ADDRESS}:{relay.port}"}
        self._env = {**env, **own}
        for number in range(COUNT):
            self._store.put(f"set/{number:02}", os.urandom(SMALL))
        self._store.put("set/large", os.urandom(LARGE))
        self._sums = self._right_sums()

    def play(self, run: Run) -> Sequence[str]:
        place = f"/lustre/alice/chaos-stage-{secrets.token_hex(4)}"
        self._folders.append(place)
        kill = "node" if run.number % NODE_EVERY == 0 else run.random.choice(KILLS[:-1])
        moment = run.random.uniform(0, 1.1 * WHOLE / RATE)
        words = [f"{kill} after {moment:.2f} s: {sentence}" for sentence in self._broken(place, kill, moment, run)]
        self._relay.sent, kept = 0, self._kept(place)
        done = self._towline(place, "run", *self._job, "--", "sh", "-c", "cd /data && sha256sum *")
        if done.returncode or done.stdout != self._sums:
            words.append(f"{kill} after {moment:.2f} s: the next job did not find the data: {done.stderr[-500:]}")
        elif self._relay.sent > WHOLE - kept + SLACK:
            words.append(f"{kill}: {kept} bytes were there, and {self._relay.sent} of {WHOLE} came again")
        run.seen["bytes kept (MiB)"] += kept >> 20
        return words

    def clean(self) -> None:
        """Take the copies away."""
        self._on_login("rm -rf " + " ".join(self._folders))

    def _broken(self, place: str, kill: str, moment: float, run: Run) -> Sequence[str]:
        """A job waits for data whose job is killed."""
        self._relay.sent = 0
        sent = self._towline(place, "run", "--detach", *self._job, "--", "true")
        job = sent.stdout.strip()
        if sent.returncode or not self._until(lambda: self._relay.sent > 0):
            return [f"the data did not begin to come: {sent.stderr[-500:]}"]
        time.sleep(moment)
        self._kill(place, kill)
        ended = self._end_of(place, job)
        whole = self._whole(place)
        run.seen[f"{kill}: {'there' if whole else 'not there'}"] += 1
        return [*self._wrong_end(ended, whole=bool(whole)), *(word for word in whole if word != "whole")]

    def _wrong_end(self, ended: dict[str, str], *, whole: bool) -> list[str]:
        state, note = ended["state"], ended["note"]
        if whole and state == "succeeded":
            return []
        nodes = self._on_login(f"sacct -X -n -P -j {ended['slurm']} -o NodeList").strip()
        words = [f"its GPU job had {nodes}"] if nodes not in ("None assigned", "") else []
        if state != "cancelled":
            words.append(f"the waiting job is {state}")
        if "could not be staged" not in note:
            words.append(f"the waiting job says {note!r}")
        return words

    def _kill(self, place: str, kill: str) -> None:
        if kill in ("cancel", "job"):
            how = "--signal=KILL --full" if kill == "job" else ""
            self._on_login(f"squeue -h -p cpu -u alice -o %i | xargs -r scancel {how}")
        elif kill == "program":
            for pid in _programs(place):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        else:
            self._crash()

    def _crash(self) -> None:
        """The node is back when Slurm has seen that it was gone; the job that brings data begins again there."""
        running = "squeue -h -p cpu -u alice -t R -o %N"
        for node in self._on_login(running).split()[:1]:
            try:
                self._lab_command("fault", "node-crash", "on", node)
                self._until(lambda: not self._on_login(running).split())
            finally:
                self._lab_command("fault", "node-crash", "off")

    def _end_of(self, place: str, job: str) -> dict[str, str]:
        self._towline(place, "wait", job)
        shown = json.loads(self._towline(place, "status", "--json", job).stdout)["jobs"][0]
        return {"state": shown["state"], "note": shown["note"], "slurm": shown["slurm_ids"][-1]}

    def _whole(self, place: str) -> list[str]:
        """`whole` for a copy that counts and is right, a sentence for one that is not right."""
        notes = self._on_login(f"ls -d {place}/*/note 2>/dev/null || true").split()
        sums = [self._on_login(f"cd {note.removesuffix('note')}data && sha256sum *") for note in notes]
        return ["whole" if found == self._sums else "a copy that is not whole counts" for found in sums]

    def _kept(self, place: str) -> int:
        """Bytes of what was brought, as they lie there."""
        find = f"find {place} -type f '(' -path '*/data/*' -o -path '*/partial/*' ')' -exec stat -c %s '{{}}' +"
        listed = self._on_login(find)
        return sum(map(int, listed.split()))

    def _right_sums(self) -> str:
        names = [*(f"{number:02}" for number in range(COUNT)), "large"]
        return "".join(f"{hashlib.sha256(self._store.get(f'set/{name}')).hexdigest()}  {name}\n" for name in names)

    @property
    def _job(self) -> tuple[str, ...]:
        keys = ("--secret", "ACCESS_KEY", "--secret", "SECRET_KEY")
        source = f"/data=s3://{self._store.bucket}/set"
        size = ("--gpus-per-node", "1", "--time", "2m", "--image", "/lustre/images/python.sqsh")
        return (*keys, "--input", source, *size)

    def _towline(self, place: str, *words: str) -> subprocess.CompletedProcess[str]:
        return self._run([TOWLINE, *words], {"TOWLINE_DATA_CACHE": place})

    def _lab_command(self, *words: str) -> None:
        self._run([TOWLINE, "lab", *words], {})

    def _run(self, command: list[str], own: dict[str, str]) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command,
            env={**self._env, **own},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )

    def _on_login(self, text: str) -> str:
        return self._lab.run_on("login1", ["sh", "-c", text], user="alice", check=False).stdout

    def _until(self, condition: Callable[[], bool]) -> bool:
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            if condition():
                return True
            time.sleep(0.2)
        return False


def _programs(place: str) -> list[int]:
    """Processes that bring data to that place; the lab's nodes have this machine's process ids."""
    found: list[int] = []
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            words = (folder / "cmdline").read_bytes().decode(errors="replace").split("\0")
            if "bring" in words and any(word.startswith(f"{place}/") for word in words):
                found.append(int(folder.name))
    return found
