"""Every fault of the matrix for real, with a client that lives beside the job and with none until all is over."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from harness.chaos.healing.play import Play, Unmet
from harness.chaos.healing.rows import ROWS, rows
from harness.chaos.healing.table import Row
from harness.chaos.registry import Run, Story, chaos
from harness.lab import lab_environment
from towline.lab import Lab

DOCS = Path(__file__).parents[3] / "docs" / "healing.md"
HEAD = "| what is broken | a client is there | nobody is there |\n|---|---|---|\n"


def _short() -> list[Row]:
    return [each for each in rows() if each.short]


def _plays(chosen: Sequence[Row]) -> list[tuple[Row, bool]]:
    """Each row with a living client, without one, or both, as it says."""
    return [(row, alive) for row in chosen for alive in row.alive]


@chaos("matrix", runs=len(_plays(rows())))
@contextmanager
def matrix() -> Generator[Story]:
    """Each fault with and without a living client; what was played is written into the table of docs/healing.md."""
    with tempfile.TemporaryDirectory() as scratch, lab_environment(Path(scratch)) as env:
        yield _Matrix(rows(), env, Path(scratch))


@chaos("matrix-short", runs=len(_plays(_short())))
@contextmanager
def matrix_short() -> Generator[Story]:
    """The faults of the matrix that take least time."""
    with tempfile.TemporaryDirectory() as scratch, lab_environment(Path(scratch)) as env:
        yield _Matrix(_short(), env, Path(scratch))


class _Matrix(Story):
    def __init__(self, chosen: Sequence[Row], env: dict[str, str], scratch: Path) -> None:
        self._rows = list(chosen)
        self._plays = _plays(chosen)
        self._env = env
        self._scratch = scratch
        self._lab = Lab.default()
        self._told: dict[tuple[str, bool], str] = {}

    def play(self, run: Run) -> Sequence[str]:
        row, alive = self._plays[run.number - 1]
        # What one job has learnt of a node is not for the next.
        env = {**self._env, "TOWLINE_STATE_DIR": str(self._scratch / f"state-{run.number}")}
        play, begun = Play(self._lab, env, alive), time.monotonic()
        where = f"{row.name} ({'with' if alive else 'without'} a client)"
        try:
            with play.undo:
                row.play(play)
                job = play.end()
                found = [*_violations(row, job), *play.overlaps()]
        except Unmet as error:
            return [f"{where}: {error}"]
        finally:
            if play.waiter and play.waiter.poll() is None:
                play.waiter.kill()
                play.waiter.communicate()
            if play.job:
                play.towline("cancel", play.job["id"], check=False)
        run.seen[job["state"]] += 1
        self._told[row.name, alive] = _told(job, time.monotonic() - begun)
        return [f"{where}: {sentence}: {_told(job, 0)}, {job['note']} ({job['id']})" for sentence in found]

    def settle(self) -> Sequence[str]:
        """Write the rows that were played into the table; the others stay as they are."""
        text = DOCS.read_text()
        before, _, after = text.partition(HEAD)
        table, _, rest = after.partition("\n\n")
        lines = {line.split(" | ")[0].strip("| "): line for line in table.splitlines()}
        for row in self._rows:
            if all((row.name, alive) in self._told for alive in row.alive):
                cells = (self._told.get((row.name, alive), "(not played)") for alive in (True, False))
                lines[row.name] = f"| {row.name} | {' | '.join(cells)} |"
        known = [lines[row.name] for row in ROWS if row.name in lines]
        DOCS.write_text(f"{before}{HEAD}" + "\n".join(known or [table]) + f"\n\n{rest}")
        return []


def _violations(row: Row, job: dict[str, Any]) -> list[str]:
    found: list[str] = []
    causes = tuple(each["cause"] for each in job["attempts"] if each["cause"])
    if job["state"] != row.state:
        found.append(f"it must be {row.state}")
    if len(job["attempts"]) not in row.attempts:
        found.append(f"it must have {' or '.join(map(str, row.attempts))} attempts")
    if row.causes is not None and causes != row.causes:
        found.append(f"the causes must be {', '.join(row.causes)}")
    return found


def _told(job: dict[str, Any], seconds: float) -> str:
    causes = ", ".join(each["cause"] for each in job["attempts"] if each["cause"])
    count = len(job["attempts"])
    told = f"{job['state']}, {count} attempt{'s' if count > 1 else ''}{f' ({causes})' if causes else ''}"
    return f"{told}, {seconds:.0f} s" if seconds else told
