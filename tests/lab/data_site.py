"""The lab for tests of data: caches and a bucket of a test's own, and which jobs Slurm has had meanwhile."""

from __future__ import annotations

import secrets
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from harness.store import Store, open_store
from tests.lab.faulty import as_alice
from tests.lab.terminal import Terminal
from towline.lab import Lab

KEYS = ("--secret", "ACCESS_KEY", "--secret", "SECRET_KEY")
GPU = ("--gpus-per-node", "1", "--time", "2m")


@dataclass
class Site:
    """The lab with caches of its own and a bucket, and the jobs that Slurm has seen since."""

    lab: Lab
    towline: Terminal
    store: Store
    place: str
    first: int

    def jobs(self) -> list[tuple[str, int, int]]:
        """Partition, start and end of each job since the test began; 0 for never."""
        shown = as_alice(
            self.lab, "SLURM_TIME_FORMAT=%s sacct -X -n -P -S now-1hours --format=JobIDRaw,Partition,Start,End,NodeList"
        )
        rows = [line.split("|") for line in shown.splitlines()]
        # One that is cancelled before it had nodes is sometimes said to have started when it ended.
        return [
            (part, 0 if nodes == "None assigned" else _number(begin), _number(end))
            for job, part, begin, end, nodes in rows
            if int(job) >= self.first
        ]

    def on(self, partition: str) -> list[tuple[int, int]]:
        """Start and end of the jobs that ever had nodes there."""
        return [(begin, end) for part, begin, end in self.jobs() if part == partition and begin]


def _number(text: str) -> int:
    return int(text) if text.isdecimal() else 0


@contextmanager
def own_site(lab: Lab, tmp_path: Path) -> Generator[Site]:
    """The lab with caches and a bucket that nobody else uses; they are gone afterwards."""
    place = f"/lustre/alice/labtest-data-{secrets.token_hex(4)}"
    store = open_store(lab)
    own = {"TOWLINE_DATA_CACHE": f"{place}/data", "TOWLINE_IMAGE_CACHE": f"{place}/images", **store.environment}
    towline = Terminal(tmp_path / "state", own)
    yield Site(lab, towline, store, place, int(as_alice(lab, "scontrol show config | sed -n 's/^NEXT_JOB_ID *= *//p'")))
    as_alice(lab, f"rm -rf {place}")
