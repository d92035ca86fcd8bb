"""What each rank is told on a real cluster, for each way of starting a command, and what of the outside reaches it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.lab.terminal import Terminal
from towline.lab import Lab

TORCHRUN = """torchrun --nnodes=$WORLD_SIZE --nproc-per-node=$NUM_GPU_PER_NODE --node-rank=$NODE_RANK \
    --master-addr=$MASTER_ADDR --master-port=$MASTER_PORT train.py"""


@pytest.fixture
def towline(lab: Lab, tmp_path: Path) -> Terminal:
    return Terminal(tmp_path / "state")


def lines(terminal: Terminal, *words: str) -> list[list[str]]:
    """The lines of a job's stdout, each in words."""
    done = terminal("run", *words)
    assert done.code == 0, done
    return [line.split() for line in done.out.splitlines()]


def test_one_task_for_each_gpu(towline: Terminal) -> None:
    """4 nodes with 8 tasks each: 32 ranks, one master, as torch's env:// wants it."""
    show = 'echo "$RANK $LOCAL_RANK $NODE_RANK $WORLD_SIZE $NNODES $MASTER_ADDR $MASTER_PORT"'
    found = lines(towline, "--nodes", "4", "--gpus-per-node", "8", "--launch", "gpu", "--shell", show)
    assert {int(words[0]) for words in found} == set(range(32))
    assert len(found) == 32
    assert {(int(words[1]), int(words[2])) for words in found} == {(rank % 8, rank // 8) for rank in range(32)}
    assert len({tuple(words[3:]) for words in found}) == 1
    assert found[0][3:6] == ["32", "4", "node1"]
    assert 20000 <= int(found[0][6]) < 30000


@pytest.fixture
def tools(lab: Lab) -> Iterator[str]:
    """A directory with a `torchrun` that prints its arguments."""
    path = "/lustre/alice/launch-tools"
    lab.run_on("login1", ["mkdir", "-p", path], user="alice", check=True)
    stand_in = lab.paths.lustre / "alice/launch-tools/torchrun"
    stand_in.write_text('#!/bin/sh\necho "$@ ${RANK-none} ${LOCAL_RANK-none} ${SLURM_PROCID-none}"\n')
    stand_in.chmod(0o755)
    yield path
    lab.run_on("login1", ["rm", "-rf", path], user="alice")


def test_torchrun_as_people_write_it_for_tao(towline: Terminal, tools: str) -> None:
    towline.environment["TOWLINE_PRESET"] = "tao"
    where = ("--mount", tools, "--env", f"PATH={tools}:/usr/bin:/bin", "--nodes", "2", "--gpus-per-node", "4")
    nodes = "--nnodes=2 --nproc-per-node=4 --node-rank={} --master-addr=node1 --master-port=29500 train.py"
    found = sorted(lines(towline, *where, "--shell", TORCHRUN))
    assert found == [[*nodes.format(rank).split(), "none", "none", "none"] for rank in range(2)]


def test_mpi_ranks_find_what_slurm_gives_them(towline: Terminal) -> None:
    towline.environment["TOWLINE_MPI"] = "pmi2"
    show = 'echo "$PMI_RANK $PMI_SIZE $RANK $LOCAL_RANK $WORLD_SIZE"; [ -e "/proc/self/fd/$PMI_FD" ]'
    found = lines(towline, "--nodes", "2", "--tasks-per-node", "2", "--launch", "mpi", "--shell", show)
    assert sorted(found) == [f"{each} 4 {each} {each % 2} 4".split() for each in range(4)]


@pytest.fixture
def login_files(lab: Lab) -> Iterator[None]:
    """Alice's login shells set a variable, and her ssh sessions another."""
    write = """cd; for f in .profile .bashrc; do
        [ ! -e $f ] || mv $f $f.kept; echo export FROM${f#.}=1 >$f
    done"""
    back = "cd; for f in .profile .bashrc; do rm $f; [ ! -e $f.kept ] || mv $f.kept $f; done"
    lab.run_on("login1", ["sh", "-c", write], user="alice", check=True)
    yield
    lab.run_on("login1", ["sh", "-c", back], user="alice")


@pytest.mark.parametrize(("export", "seen"), [("none", ""), ("all", "1")])
@pytest.mark.usefixtures("login_files")
def test_what_is_set_for_the_job_arrives_and_the_users_own_environment_only_on_demand(
    towline: Terminal, export: str, seen: str
) -> None:
    towline.environment["TOWLINE_EXPORT"] = export
    show = 'echo "[$GREETING] [$FROMprofile] [$FROMbashrc] [$SLURM_CONF] [$TOWLINE_ATTEMPT] [$LC_ALL]"'
    (found,) = lines(towline, "--env", "GREETING=hi", "--nodes", "1", "--shell", show)
    assert found == f"[hi] [] [{seen}] [/etc/slurm/slurm.conf] [1] []".split()
