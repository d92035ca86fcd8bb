"""Logs on the real Slurm: of ranks, nodes, tasks and attempts, followed to the last byte."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.lab.terminal import Terminal
from towline.lab import Lab

TALKS = 'i=0; while [ $i -lt 300 ]; do echo "$RANK line $i"; i=$((i + 1)); done; echo "error of $RANK" >&2'


@pytest.fixture
def towline(lab: Lab, tmp_path: Path) -> Terminal:
    return Terminal(tmp_path / "state")


def test_ranks_with_log_files_of_their_own(towline: Terminal) -> None:
    size = ("--nodes", "2", "--tasks-per-node", "2", "--log-per", "rank")
    done = towline("run", "--name", "ranks", *size, "--shell", TALKS)
    assert done.code == 0, done
    lines = done.out.splitlines()
    for rank in range(4):
        assert [line for line in lines if line.startswith(f"{rank}: ")] == [
            f"{rank}: {rank} line {i}" for i in range(300)
        ]
    assert sorted(line for line in done.err.splitlines() if "error of" in line) == [
        f"{i}: error of {i}" for i in range(4)
    ]
    assert towline("logs", "--rank", "3", "ranks").out == "".join(f"3 line {i}\n" for i in range(300))
    nodes = towline.job("ranks")["attempts"][-1]["nodes"]
    first = f"node{min(int(char) for char in nodes if char.isdigit())}"
    of_node = towline("logs", "--node", first, "--tail", "1", "ranks")
    assert sorted(of_node.out.splitlines()) == ["0: 0 line 299", "1: 1 line 299"]
    assert towline("logs", "--attempt", "2", "ranks").code == 64


def test_nodes_with_log_files_of_their_own_in_a_role(towline: Terminal, tmp_path: Path) -> None:
    (tmp_path / "job.yaml").write_text(
        "name: pair\nlog_per: node\nroles:\n"
        "- {name: a, nodes: 2, tasks_per_node: 2, shell: 'echo \"$RANK\"'}\n- {name: b, shell: 'true'}\n"
    )
    done = towline("run", "-f", str(tmp_path / "job.yaml"))
    assert done.code == 0, done
    words = sorted(line.split() for line in done.out.splitlines())
    assert [(word[0], word[2]) for word in words] == [("a", "0"), ("a", "1"), ("a", "2"), ("a", "3")]
    assert len({word[1] for word in words}) == 2
    assert towline("logs", "--rank", "0", "pair").out == ""


def test_all_tasks_of_an_array_are_followed_together(towline: Terminal) -> None:
    towline.submit("--name", "sweep", "--array", "0-5%3", "--partition", "cpu", "--shell", "echo $SLURM_ARRAY_TASK_ID")
    done = towline("logs", "-f", "sweep")
    assert sorted(done.out.splitlines()) == [f"{task}: {task}" for task in range(6)]
    assert done.code == 0


def test_a_log_goes_on_through_a_requeue(towline: Terminal, lab: Lab) -> None:
    again = 'echo "attempt $TOWLINE_ATTEMPT"; [ "$TOWLINE_ATTEMPT" = 2 ] || { echo waits; sleep 300; }'
    job = towline.submit("--name", "twice", "--partition", "cpu", "--shell", again)
    process = towline.start("logs", "-f", job)
    assert process.stdout
    assert process.stdout.readline() == "attempt 1\n"
    assert process.stdout.readline() == "waits\n"
    slurm_id = towline.job(job)["attempts"][-1]["slurm_id"]
    lab.run_on("login1", ["scontrol", "requeue", slurm_id], user="alice")
    out, err = process.communicate(timeout=180)
    assert out == "attempt 2\n"
    assert "attempt 2 begins here" in err
    assert towline("logs", "--attempt", "1", job).out == "attempt 1\nwaits\n"
    no_ranks = towline("logs", "--rank", "0", job)
    assert no_ranks.code == 64
    assert "--log-per rank" in no_ranks.err


def test_a_job_that_never_started_says_so(towline: Terminal) -> None:
    job = towline.submit("--name", "never", "--partition", "cpu", "--begin", "+1h", "--", "true")
    waits = towline("logs", job)
    assert (waits.code, waits.out) == (0, "")
    assert f"job {job} has not started" in waits.err
    towline("cancel", job)
    assert f"job {job} never started, so it has no log" in towline("logs", "-f", job).err + towline("logs", job).err
