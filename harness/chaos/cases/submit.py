"""Submissions are cut anywhere by anything: one job each or none, and the store says which."""

from __future__ import annotations

import json
import secrets
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator, Iterable, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from harness.chaos.registry import Run, Story, chaos
from harness.chaos.submission.clients import Client
from harness.chaos.submission.cuts import PAUSE_SECONDS, Cut, Size, draw
from harness.chaos.submission.weather import weather
from harness.lab import TOWLINE, lab_environment
from towline.config.files import load_profile
from towline.lab import Lab
from towline.models.ids import new_job_id

TOGETHER = 10
CLIENT_SECONDS = 60
"""For so long a batch is waited for; clients that are still at it then are looked at in the end."""
SETTLE_SECONDS = 120
"""How long what is open may stay so after the last batch."""
OPEN = "submitting"
SPARED = frozenset({"120:0", "121:0"})
"""Exit codes of a second or a cancelled job, which ran nothing (launch/records.py)."""
CLEAN_UP = "squeue -h -u alice -o '%A %j' | sed -n 's/ chaos-.*//p' | xargs -r scancel"
OVER = ("COMPLETED", "CANCELLED", "FAILED", "TIMEOUT", "NODE_FAIL", "OUT_OF_MEMORY")

Job = dict[str, Any]


@dataclass(frozen=True)
class Row:
    """One of Slurm's jobs."""

    id: str
    token: str
    state: str
    code: str
    nodes: str

    @property
    def over(self) -> bool:
        """Whether it will not run any more."""
        return self.state.startswith(OVER)

    @property
    def ran(self) -> bool:
        """Whether it came as far as the user's command, or may."""
        return self.code not in SPARED and self.nodes not in ("", "None assigned") and "CANCELLED" not in self.state


@dataclass
class Told:
    """One run, to be looked at again until it is settled."""

    run: Run
    cut: Cut
    weather: str
    job_id: str
    players: list[BaseProcess] = field(default_factory=list[BaseProcess])

    def says(self, sentence: str) -> str:
        """A finding with all that is known of the run."""
        return f"job {self.job_id} ({self.cut}; {self.weather}): {sentence}"


@chaos("submit", runs=60)
@contextmanager
def submit() -> Generator[Story]:
    """Submissions cut at random bytes and at each step, Slurm down or slow, the disk full: one job or none."""
    with ExitStack() as stack:
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="tl")))
        env = stack.enter_context(lab_environment(scratch / "one"))
        lab = Lab.default()
        shared = lab.paths.lustre / "alice" / f"chaos-{secrets.token_hex(3)}"
        shared.mkdir()
        shared.chmod(0o777)
        stack.callback(subprocess.run, ["rm", "-rf", str(shared)], check=False)
        stack.callback(lab.run_on, "login1", ["sh", "-c", CLEAN_UP], user="alice")
        yield _Cutting(lab, env, scratch, shared)


class _Cutting(Story):
    together = TOGETHER

    def __init__(self, lab: Lab, env: dict[str, str], scratch: Path, shared: Path) -> None:
        self._lab = lab
        self._env = env
        self._scratch = scratch
        self._shared = shared
        self._profile = load_profile("lab")
        self._open: list[Told] = []
        (shared / "steps.sh").write_text((Path(__file__).parents[1] / "submission" / "steps.sh").read_text())
        self._towline("run", "--detach", "--name", "chaos-first", "--partition", "cpu", "--", "true")
        self._size = self._measured()

    def _measured(self) -> Size:
        """What a submission takes that is left alone."""
        told = Told(Run.of(0, 0), Cut("none", how="count", waits=True), "fair", new_job_id())
        self._begin(told)
        told.players[0].join()
        up, down = (int(word) for word in (self._scratch / "c" / told.job_id / "carried").read_text().split())
        count = self._on_login(f"wc -c <{_count(told.job_id)}")
        print(f"   a submission takes {up} bytes up, {down} down and {int(count)} commands", file=sys.stderr)
        assert int(count) > 10, "the script's commands were not counted"
        self._end_all([told])
        return Size(up, down, int(count))

    # --- A batch ---

    def play_together(self, runs: Sequence[Run]) -> Sequence[Sequence[str]]:
        told = [Told(run, draw(run.random, self._size), "", _id_of(run)) for run in runs]
        with weather(self._lab, runs[0].random) as name:
            for each in told:
                each.weather = name
                self._begin(each)
            self._await(told)
        before = self._rows()
        store = self._stores()
        after = self._rows()
        found = [self._judged(each, before, store, after) for each in told]
        self._end_all(told)
        for each in told:
            each.run.seen[f"cut {each.cut.kind}"] += 1
            each.run.seen[f"weather {name}"] += 1
            each.run.seen[f"state {_state(store, each) or 'unknown to the store'}"] += 1
        return found

    def _begin(self, told: Told) -> None:
        setup = ""
        if told.cut.how != "none":
            values = {
                "at": told.cut.step,
                "do": told.cut.how,
                "seconds": PAUSE_SECONDS,
                "count": _count(told.job_id),
                "mark": self._shared / told.job_id,
            }
            setup = " ".join(f"tl_chaos_{name}={value};" for name, value in values.items())
            setup += f" . {self._shared}/steps.sh"
        names = ["one", "two"] if told.cut.kind == "race" else ["one"]
        for name in names:
            client = Client(
                self._profile,
                told.job_id,
                "chaos",
                told.cut,
                self._scratch / name,
                self._scratch / "c" / (told.job_id + name[0] * (name != "one")),
                setup,
                self._shared / told.job_id,
            )
            told.players.append(client.start())

    def _await(self, told: Iterable[Told]) -> None:
        """Wait for what does not take its time on purpose."""
        deadline = time.monotonic() + CLIENT_SECONDS
        for player in (player for each in told if each.cut.patience < PAUSE_SECONDS for player in each.players):
            player.join(max(0, deadline - time.monotonic()))

    def _judged(self, told: Told, before: Sequence[Row], store: Sequence[Job], after: Sequence[Row]) -> list[str]:
        """What does not hold after one look; a run whose end is open is kept for the end."""
        mine = [row for row in after if row.token == f"chaos-{told.job_id}-a1"]
        known = [job for job in store if job["id"] == told.job_id]
        seen = {row.id for row in before}
        found = [*_doubles(mine), *_unknown([row for row in mine if row.id in seen], known)]
        if any(job["state"] == OPEN for job in known) or any(player.is_alive() for player in told.players):
            self._open.append(told)
        else:
            found += _compared(known, mine)
        return [told.says(sentence) for sentence in found]

    # --- The end ---

    def settle(self) -> Sequence[str]:
        deadline = time.monotonic() + SETTLE_SECONDS
        open_ones = self._open
        while open_ones and time.monotonic() < deadline:
            store = self._stores()
            for each in open_ones:
                for player in each.players:
                    player.join(0)
            open_ones = [
                each
                for each in open_ones
                if _state(store, each) == OPEN or any(player.is_alive() for player in each.players)
            ]
            time.sleep(1)
        store, rows = self._stores(), self._rows()
        found: list[str] = []
        for each in self._open:
            mine = [row for row in rows if row.token == f"chaos-{each.job_id}-a1"]
            known = [job for job in store if job["id"] == each.job_id]
            sentences = [*_doubles(mine), *_unknown(mine, known), *_compared(known, mine)]
            found += [f"run {each.run.number}: {each.says(sentence)}" for sentence in sentences]
        return found

    # --- The world ---

    def _stores(self) -> list[Job]:
        """What both stores say after one look each; a job of both is told by the first."""
        jobs: list[Job] = []
        for name in ("one", "two"):
            if (self._scratch / name / "store.db").exists():
                jobs += json.loads(self._towline("ps", "--all", "--json", state=name))["jobs"]
        return jobs

    def _rows(self) -> list[Row]:
        ask = (
            "sacct -X -n -P -S now-3hours -o JobID,JobName%200,State,ExitCode,NodeList; "
            "squeue -h -t all -o '%i|%j|%T|?|%N'"
        )
        rows: dict[str, Row] = {}
        for row in filter(None, map(_row, self._on_login(ask).splitlines())):
            # The queue is ahead of accounting, and has no exit codes.
            known = rows.get(row.id)
            rows[row.id] = replace(row, code=known.code) if known and row.code == "?" else row
        return [row for row in rows.values() if row.token.startswith("chaos-")]

    def _end_all(self, told: Iterable[Told]) -> None:
        """Those that wait in the queue would fill it."""
        over = {f"chaos-{each.job_id}-a1" for each in told if each not in self._open}
        rows = [line.split() for line in self._on_login("squeue -h -u alice -t PENDING -o '%A %j'").splitlines()]
        if ids := [row[0] for row in rows if row[-1] in over]:
            self._on_login(f"scancel {' '.join(ids)}")

    def _on_login(self, line: str) -> str:
        return self._lab.run_on("login1", ["sh", "-c", line], user="alice").stdout

    def _towline(self, *arguments: str, state: str = "one") -> str:
        env = {**self._env, "TOWLINE_STATE_DIR": str(self._scratch / state)}
        done = subprocess.run(
            [TOWLINE, *arguments], env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise SystemExit(f"towline {' '.join(arguments)} ended with {done.returncode}: {done.stdout}{done.stderr}")
        return done.stdout


def _id_of(run: Run) -> str:
    """An id that no other run of this or another day has; they count 32 in a second."""
    return new_job_id(time.time() + run.number / 16)


def _count(job_id: str) -> str:
    """The file for a script's commands, in the login host's own /tmp."""
    return f"/tmp/{job_id}.count"  # noqa: S108  the lab's


def _row(line: str) -> Row | None:
    parts = line.split("|")
    if len(parts) != 5:
        return None
    number, token, state, code, nodes = parts
    return Row(number, token, state, code, nodes)


def _state(store: Sequence[Job], told: Told) -> str:
    states = [str(job["state"]) for job in store if job["id"] == told.job_id]
    return OPEN if OPEN in states else next(iter(states), "")


def _doubles(mine: Sequence[Row]) -> list[str]:
    found: list[str] = []
    if len(living := [row for row in mine if not row.over]) > 1:
        found.append(f"{len(living)} jobs are left in the queue: {living}")
    if len(ran := [row for row in mine if row.ran]) > 1:
        found.append(f"{len(ran)} jobs have started: {ran}")
    return found


def _unknown(there: Sequence[Row], known: Sequence[Job]) -> list[str]:
    """Jobs that may run and that no store follows."""
    ids = {number for job in known for number in job["slurm_ids"]}
    lost = [row for row in there if row.id not in ids and (row.ran or not row.over)]
    return [f"the store ({[job['state'] for job in known]}) does not know {lost}"] if lost else []


def _compared(known: Sequence[Job], mine: Sequence[Row]) -> list[str]:
    """Where the stores and Slurm do not say the same."""
    found: list[str] = []
    ids = [row.id for row in mine]
    for job in known:
        if job["state"] == OPEN:
            found.append("its end is still open")
        if any(number not in ids for number in job["slurm_ids"]):
            found.append(f"the store says {job['state']} with {job['slurm_ids']}, and Slurm has {ids}")
        if job["state"] in ("pending", "running", "succeeded") and not job["slurm_ids"]:
            found.append(f"the store says {job['state']} without a job")
    return found
