"""A process of its own whose cluster has one job that never ends by itself.

`python -m tests.unit.cli.following PATIENCE ARG...` runs `towline ARG...` on it.
PATIENCE is for how many seconds a second Ctrl-C is awaited; `stuck` in its place makes submissions hang.
"""

from __future__ import annotations

import sys

from tests.unit.cli.fake_cluster import FakeCluster, FakeJob, Forever, out, record
from towline.cli import doors, follow
from towline.cli.main import main
from towline.engine.events import StateChanged
from towline.models.job import JobState

if __name__ == "__main__":
    events = (
        StateChanged(record(JobState.PENDING, note="nodes are busy")),
        StateChanged(record(nodes="node1")),
        out(b"\x1b[31mstarted\x1b[2J\n"),
        out(b"an open line"),
        Forever(),
    )
    job = FakeJob(record(), events)
    stuck = sys.argv[1] == "stuck"
    doors.opener = FakeCluster(known=[job], job=job, stuck=stuck).open
    follow.SECOND_CHANCE = 0.0 if stuck else float(sys.argv[1])
    sys.exit(main(sys.argv[2:]))
