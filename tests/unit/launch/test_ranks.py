"""What the command finds in each task: its environment, its place, its signals."""

from __future__ import annotations

import signal
import socket
import subprocess
import time
from pathlib import Path

import pytest

from tests.unit.launch.allocation import JOB_ID, Allocation
from towline.launch import records
from towline.launch.records import EndRecord
from towline.launch.rendezvous import master_port
from towline.models.spec import JobSpec

SHOWN = frozenset(
    {
        *("MASTER_ADDR", "MASTER_PORT", "NNODES", "NODE_RANK", "NPROC_PER_NODE", "RANK", "LOCAL_RANK", "WORLD_SIZE"),
        *("TOWLINE_JOB_ID", "TOWLINE_JOB_NAME", "TOWLINE_ATTEMPT", "TOWLINE_RESULTS_DIR", "TOWLINE_JOB_DIR"),
    }
)


def shown(allocation: Allocation, rank: int) -> dict[str, str]:
    lines = (allocation.directory / f"results/env.{rank}").read_text().splitlines()
    return {name: value for name, _, value in (line.partition("=") for line in lines) if name in SHOWN}


def test_each_rank_knows_its_place(allocation: Allocation) -> None:
    allocation.place_text('env >"$TOWLINE_RESULTS_DIR/env.$RANK"', name="train", nodes=2, tasks_per_node=2)
    assert allocation.run(12345678) == 0
    common = {
        "MASTER_ADDR": "node5",
        "MASTER_PORT": "25678",
        "NNODES": "2",
        "NPROC_PER_NODE": "2",
        "WORLD_SIZE": "4",
        "TOWLINE_JOB_ID": JOB_ID,
        "TOWLINE_JOB_NAME": "train",
        "TOWLINE_ATTEMPT": "1",
        "TOWLINE_JOB_DIR": str(allocation.directory),
        "TOWLINE_RESULTS_DIR": f"{allocation.directory}/results",
    }
    assert shown(allocation, 0) == {**common, "NODE_RANK": "0", "RANK": "0", "LOCAL_RANK": "0"}
    assert shown(allocation, 3) == {**common, "NODE_RANK": "1", "RANK": "3", "LOCAL_RANK": "1"}


def test_without_scontrol_the_batch_host_is_the_master(allocation: Allocation) -> None:
    (allocation.tools / "scontrol").write_text("#!/bin/sh\nexit 1\n")
    allocation.place_text('env >"$TOWLINE_RESULTS_DIR/env.$RANK"')
    assert allocation.run(SLURMD_NODENAME="node5") == 0
    assert shown(allocation, 0)["MASTER_ADDR"] == "node5"


def tao(allocation: Allocation, **resources: int) -> list[str]:
    spec = JobSpec.build(shell="env", resources={"gpus_per_node": 8, **resources})
    allocation.place_plan(spec, convention="tao")
    assert allocation.run(SLURM_NTASKS="1", SLURM_NNODES="1", GROUP_RANK="0", SLURM_NTASKS_PER_NODE="1") == 0
    return [line for line in allocation.out().splitlines() if not line.startswith(("TOWLINE_", "PATH"))]


def test_what_lightning_must_not_see_is_absent_under_taos_convention(allocation: Allocation) -> None:
    """One node, then two: the variables of the contract, and Slurm's number of the node."""
    found = {line.partition("=")[0] for line in tao(allocation)}
    stumbles = {"SLURM_NTASKS", "SLURM_NNODES", "SLURM_PROCID", "SLURM_LOCALID", "SLURM_NTASKS_PER_NODE"}
    stumbles |= {"RANK", "LOCAL_RANK", "GROUP_RANK"}
    several = {"WORLD_SIZE", "NODE_RANK", "NUM_GPU_PER_NODE", "MASTER_ADDR", "MASTER_PORT", "NNODES", "NPROC_PER_NODE"}
    assert not found & (stumbles | several)
    assert "SLURM_NODEID" in found
    twin = allocation.twin("two")
    lines = tao(twin, nodes=2)
    assert not {line.partition("=")[0] for line in lines} & stumbles
    wanted = ["MASTER_ADDR=node5", "MASTER_PORT=29500", "WORLD_SIZE=2", "NUM_GPU_PER_NODE=8", "SLURM_JOB_NAME=bash"]
    assert {line: lines.count(line) for line in [*wanted, "NODE_RANK=0", "NODE_RANK=1"]} == {
        **dict.fromkeys(wanted, 2),
        "NODE_RANK=0": 1,
        "NODE_RANK=1": 1,
    }


@pytest.mark.parametrize(
    ("resources", "local"),
    [
        ({"gpus_per_node": 8}, "none"),
        ({"gpus_per_node": 1}, "0"),
        ({}, "0"),
        ({"gpus_per_node": 2, "tasks_per_node": 2}, "0\n1"),
    ],
)
def test_a_task_with_several_gpus_has_no_local_rank(
    allocation: Allocation, resources: dict[str, int], local: str
) -> None:
    """Pyxis sets it in images with PyTorch."""
    allocation.place_plan(JobSpec.build(shell='echo "${LOCAL_RANK-none}"', resources=resources))
    assert allocation.run(LOCAL_RANK="0") == 0
    assert sorted(allocation.out().split()) == local.split()


@pytest.mark.parametrize(
    ("log_per", "files"),
    [
        ("rank", {"ranks/0-node5": "0\n", "ranks/1-node5": "1\n", "ranks/2-node6": "2\n", "ranks/3-node6": "3\n"}),
        ("node", {"nodes/0-node5": "0\n1\n", "nodes/1-node6": "2\n3\n"}),
        ("job", {}),
    ],
)
def test_ranks_or_nodes_have_logs_of_their_own(allocation: Allocation, log_per: str, files: dict[str, str]) -> None:
    allocation = allocation.twin("100%t")
    allocation.place_text('echo "$RANK"; echo "e$RANK" >&2', nodes=2, tasks_per_node=2, log_per=log_per)
    assert allocation.run() == 0
    found = {name: (allocation.attempt(1) / f"{name}.out").read_text() for name in files}
    assert {name: "".join(sorted(text.splitlines(keepends=True))) for name, text in found.items()} == files
    assert all("e" in (allocation.attempt(1) / f"{name}.err").read_text() for name in files)
    assert allocation.out() == "" if files else sorted(allocation.out().split()) == ["0", "1", "2", "3"]


def test_where_a_rank_runs_is_known_while_it_does(allocation: Allocation) -> None:
    allocation.place_text('cp "${0%/script/*}/attempts/1/exit/.$RANK" "$TOWLINE_RESULTS_DIR/"', tasks_per_node=2)
    assert allocation.run() == 0
    words = (allocation.directory / "results/.1").read_text().split()
    assert words[0].isdigit()
    assert words[1:] == ["-", "0", "1"]


def test_a_port_in_use_is_passed_over(allocation: Allocation) -> None:
    with socket.socket() as busy:
        slurm_id = 1
        while busy.connect_ex(("127.0.0.1", master_port(slurm_id))) == 0:
            slurm_id += 1
    with socket.create_server(("127.0.0.1", master_port(slurm_id))):
        allocation.place_text('echo "$MASTER_PORT"')
        assert allocation.run(slurm_id) == 0
    assert int(allocation.out()) == master_port(slurm_id + 1)


LEAKS = {
    "LD_LIBRARY_PATH": "/host",
    "PYTHONPATH": "/host",
    "HF_TOKEN": "t",
    "PMI_RANK": "4",
    "number": "9",
    "exits": "/x",
    "host": "h",
}
STAY = {
    "https_proxy": "http://p",
    "NCCL_IB_HCA": "mlx5",
    "LC_MESSAGES": "C",
    "SLURM_X": "1",
    "CUDA_VISIBLE_DEVICES": "0",
}


@pytest.mark.parametrize("whole", [False, True])
def test_what_of_the_batch_scripts_environment_reaches_a_task(allocation: Allocation, whole: bool) -> None:
    spec = JobSpec.build(shell="env", env={"GREETING": "a\nPATH=x"})
    allocation.place_plan(spec, whole_environment=whole)
    assert allocation.run(42, **LEAKS, **STAY) == 0
    shown = {line.partition("=")[0] for line in allocation.out().splitlines()}
    assert shown >= {*STAY, "GREETING"}
    assert shown & set(LEAKS) == ({*LEAKS} if whole else set())


def test_the_specs_environment_wins(allocation: Allocation) -> None:
    allocation.place_text('echo "$MASTER_PORT $PYTHONUNBUFFERED"', env={"MASTER_PORT": "1234", "PYTHONUNBUFFERED": ""})
    assert allocation.run() == 0
    assert allocation.out() == "1234 \n"


def test_an_environment_that_would_break_the_prelude(allocation: Allocation) -> None:
    allocation.place_text("exit 7", env={"PATH": "/nowhere", "rank": "9", "exits": "/nowhere", "child": "1"})
    assert allocation.run() == 7
    assert allocation.exits() == {"0": "7 self", "first": "0"}


def test_on_the_bare_node_instead_of_the_image_nothing_runs(allocation: Allocation) -> None:
    allocation.place_plan(JobSpec.build(command=("echo", "ran")), container=("--container-image=/i.sqsh",))
    assert allocation.run() == records.NO_CONTAINER
    assert allocation.end() == EndRecord("failed", records.NO_CONTAINER, 0, "no-container")
    assert allocation.out() == ""
    assert "the container did not start; this node (unknown) runs commands on the bare host" in allocation.err()


# --- Signals ---------------------------------------------------------------------------------------------------


def wait_for(path: Path) -> None:
    deadline = time.monotonic() + 60
    while not path.exists():
        assert time.monotonic() < deadline, f"{path} did not appear"
        time.sleep(0.01)


def running(allocation: Allocation, shell: str, **fields: int) -> subprocess.Popen[bytes]:
    """A job that has come to the point where its command made the file `ready`."""
    job = allocation.place_text(shell, **fields).start()
    wait_for(allocation.directory / "ready")
    return job


def test_term_reaches_every_command_and_the_end_says_stopped(allocation: Allocation) -> None:
    job = running(allocation, '[ "$RANK" = 0 ] && : >ready; exec sleep 60', nodes=2)
    job.terminate()
    assert job.wait(timeout=60) == 143
    assert allocation.end() == EndRecord("stopped", 143, None, "stopped")
    assert allocation.fields("signal")["signal"] == "TERM"
    assert allocation.exits()["0"] == "143 signal"
    assert "first" not in allocation.exits()


def test_term_after_a_cancellation(allocation: Allocation) -> None:
    job = running(allocation, ": >ready; exec sleep 60")
    (allocation.directory / "cancelled").touch()
    job.terminate()
    assert job.wait(timeout=60) == 143
    assert allocation.end() == EndRecord("cancelled", 143, None, "cancelled")


def test_a_command_that_saves_and_ends_well_on_term_has_stopped_and_is_not_done(allocation: Allocation) -> None:
    job = running(allocation, "trap 'echo saved; exit 0' TERM; : >ready; while :; do sleep 0.02; done")
    job.terminate()
    assert job.wait(timeout=60) == 143
    assert allocation.exits() == {"0": "0 signal"}
    assert allocation.end() == EndRecord("stopped", 143, None, "stopped")
    assert allocation.out() == "saved\n"


def test_a_command_that_ended_well_before_term_is_done(allocation: Allocation) -> None:
    """srun may linger after its tasks, for output or on a slow node."""
    linger = "trap 'exit 0' TERM; : >lingering; while :; do sleep 0.02; done"
    allocation.place(command=("true",))
    (allocation.tools / "srun").rename(allocation.tools / "real-srun")
    (allocation.tools / "srun").write_text(f'#!/bin/sh\nreal-srun "$@"; {linger}\n')
    (allocation.tools / "srun").chmod(0o755)
    job = allocation.start()
    wait_for(allocation.directory / "lingering")
    job.terminate()
    assert job.wait(timeout=60) == 0
    assert allocation.end() == EndRecord("done", 0)


def test_a_failure_in_consequence_of_term_is_not_the_jobs_own(allocation: Allocation) -> None:
    job = running(allocation, "trap 'exit 3' TERM; : >ready; while :; do sleep 0.02; done")
    job.terminate()
    assert job.wait(timeout=60) == 143
    assert allocation.exits() == {"0": "3 signal"}


@pytest.mark.parametrize("number", [signal.SIGUSR1, signal.SIGUSR2])
def test_user_signals_are_passed_on_and_end_nothing(allocation: Allocation, number: signal.Signals) -> None:
    name = number.name.removeprefix("SIG")
    job = running(allocation, f"trap 'echo got {name}; exit 5' {name}; : >ready; while :; do sleep 0.02; done")
    job.send_signal(number)
    assert job.wait(timeout=60) == 5
    assert allocation.out() == f"got {name}\n"
    assert allocation.exits()["0"] == "5 self"


def test_many_signals_do_not_lose_the_code(allocation: Allocation) -> None:
    count = "n=0; trap 'n=$((n+1)); : >got.$n' USR1; : >ready"
    job = running(allocation, f"{count}; until [ -e stop ]; do sleep 0.01; done; exit 11")
    for number in range(1, 6):
        job.send_signal(signal.SIGUSR1)
        wait_for(allocation.directory / f"got.{number}")
    (allocation.directory / "stop").touch()
    assert job.wait(timeout=60) == 11


def ignored_signals(allocation: Allocation) -> int:
    allocation.place(command=("grep", "SigIgn", "/proc/self/status"))
    assert allocation.run(LC_ALL="xx_XX") == 0
    assert "perl" not in allocation.err()  # it warns of an unknown locale unless told not to
    return int(allocation.out().split()[1], 16)


def ignores(mask: int, number: signal.Signals) -> bool:
    return bool(mask & (1 << (number - 1)))


def test_the_command_can_be_interrupted(allocation: Allocation) -> None:
    """A shell's background commands ignore INT, and so would everything that the command starts."""
    mask = ignored_signals(allocation)
    assert not ignores(mask, signal.SIGINT)
    assert not ignores(mask, signal.SIGQUIT)


def test_the_command_can_be_interrupted_in_an_older_image(allocation: Allocation) -> None:
    old = '#!/bin/sh\ncase $1 in --*) exit 1 ;; esac\nexec /usr/bin/env "$@"\n'
    (allocation.tools / "env").write_text(old)
    (allocation.tools / "env").chmod(0o755)
    assert not ignores(ignored_signals(allocation), signal.SIGINT)
