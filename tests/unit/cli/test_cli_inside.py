"""`towline exec`, `shell` and `gpus`: what is asked of the job, and what cannot be."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.unit.cli.fake_cluster import FakeCluster, FakeJob, record
from towline.engine.inside.entering import GpuReading, Place, Ran

Towline = Callable[..., Any]


def job() -> FakeJob:
    found = FakeJob(record())
    found.ran = Ran(7, b"out\n", b"err\n")
    found.readings = (GpuReading("n1", "0", "H100", 93.0, 40960.0, 81920.0, None, 310.4),)
    return found


def test_a_commands_words_output_and_code_pass_as_they_are(towline: Towline, cluster: FakeCluster) -> None:
    cluster.known = [found := job()]
    ran = towline("exec", "--rank", "3", "--secrets", "41", "--", "ls", "--", "-l", "a b")
    assert (ran.status, ran.stdout, ran.stderr) == (7, "out\n", "err\n")
    assert found.commands == [(("ls", "--", "-l", "a b"), Place(rank=3, secrets=True))]


def test_what_has_no_terminal_gets_none(towline: Towline, cluster: FakeCluster) -> None:
    cluster.known = [job()]
    for words in (("shell", "41"), ("exec", "-t", "41", "top"), ("exec", "41"), ("exec", "41", "--")):
        ran = towline(*words)
        assert ran.status == 64, words
        assert "fix:" in ran.stderr


def test_gpus_are_a_table(towline: Towline, cluster: FakeCluster) -> None:
    cluster.known = [job()]
    words = towline("gpus", "41").stdout.splitlines()[1].split()
    assert words == ["k3v9x2m4q", "n1", "0", "H100", "93", "%", "40.0/80.0", "GiB", "-", "310", "W"]
    (gpu,) = towline("gpus", "--json", "41").document["gpus"]
    assert (gpu["job_id"], gpu["utilization"], gpu["temperature"]) == ("k3v9x2m4q", 93.0, None)
