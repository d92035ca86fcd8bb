"""After a reset, and after going down or up, no fault is left."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from click.testing import CliRunner

from tests.lab.faulty import TICKET, as_alice, await_field, submit
from towline.cli.lab import lab as command
from towline.lab import Lab
from towline.lab.accounting import SLURMDBD
from towline.lab.controller import SLURMCTLD, slurmd
from towline.lab.layout import LOGINS, STATIC_NODES
from towline.lab.logins import sshd

FAULTS = (
    ("gpu-lost", "node1"),
    ("login-latency", "100"),
    ("login-maxsessions", "1"),
    ("node-drain", "node3"),
    ("no-requeue",),
    ("prolog-fail", "node2"),
    ("queue-limit", "5"),
    ("quota",),
    ("slurmctld-slow", "200"),
)


@pytest.fixture
def faulty(lab: Lab) -> Iterator[Lab]:
    """The lab with many faults and some jobs."""
    try:
        for name, *words in FAULTS:
            lab.fault_on(name, *words)
        await_field(lab, submit(lab, "-w node1", "sleep 600"), "JobState", "RUNNING")
        submit(lab, "-N4", "sleep 600")
        yield lab
    finally:
        lab.reset()


def daemons(lab: Lab) -> list[int]:
    all_of_them = [SLURMCTLD, SLURMDBD, *map(slurmd, STATIC_NODES), *map(sshd, LOGINS)]
    return [daemon.pids(lab.paths)[0] for daemon in all_of_them]


def test_a_reset_ends_every_fault_and_job_and_restarts_nothing(faulty: Lab) -> None:
    before = daemons(faulty)
    assert len(faulty.status().faults) == len(FAULTS)
    done = CliRunner().invoke(command, ["reset"])
    assert done.exit_code == 0, done.output
    assert "The lab is as new" in done.output
    assert daemons(faulty) == before
    assert faulty.status().is_up
    assert faulty.status().faults == ()
    assert as_alice(faulty, f"squeue -h -n {TICKET}") == ""
    assert as_alice(faulty, "timeout 30 srun -N4 hostname | sort").split() == ["node1", "node2", "node3", "node4"]


def test_up_ends_every_fault_and_leaves_the_jobs(faulty: Lab) -> None:
    assert faulty.up() is True
    assert faulty.status().faults == ()
    # The other job may start now that its nodes are back.
    assert "node1" in as_alice(faulty, f"squeue -h -n {TICKET} -t RUNNING -o %N").split()
