"""What the supervisor makes of an attempt's end, and how it starts the next one."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.launch.allocation import JOB_ID, Allocation
from tests.unit.launch.test_ranks import wait_for
from towline.lab.process import until
from towline.launch.records import BY_CANCEL, Decision, decision_record
from towline.models.spec import JobSpec

XID = 'echo "NVRM: Xid (PCI:0000:1b:00): 79, GPU has fallen off the bus." >&2; exit 1'
TRACEBACK = r'printf "Traceback (most recent call last):\n  File \"t.py\", line 3\nValueError: no such optimizer\n" >&2'
NCCL = 'echo "torch.distributed.DistBackendError: NCCL error in: ProcessGroupNCCL.cpp:1, ncclRemoteError" >&2'


def decided(allocation: Allocation, number: int = 1) -> Decision:
    found = decision_record(allocation.fields("decision", number))
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("text", "cause", "goes_on"),
    [
        ("true", "done", False),
        ("exit 7", "user", False),
        ("echo working; exit 1", "user", False),
        ("exit 1", "ambiguous", True),
        ("echo 'srun: error: node5: task 0: Exited with exit code 1' >&2; exit 1", "ambiguous", True),
        (f"{TRACEBACK}; exit 1", "user", False),
        (f"{TRACEBACK}; {NCCL}; exit 1", "user", False),
        (f"{NCCL}; {TRACEBACK}; exit 1", "user", False),
        ("echo 'torch.OutOfMemoryError: CUDA out of memory.' >&2; exit 1", "user", False),
        (f"{NCCL}; exit 1", "ambiguous", True),
        (XID, "node", True),
        (f"{TRACEBACK}; {XID}", "node", True),
        ("echo 'slurmstepd: error: Detected 1 oom_kill event in StepId=7.0.' >&2; exit 137", "memory", False),
        ("exit 137", "ambiguous", True),
    ],
)
def test_the_class_and_whether_it_goes_on(allocation: Allocation, text: str, cause: str, goes_on: bool) -> None:
    allocation.place_text(text).run(SLURMD_NODENAME="node5")
    found = decided(allocation)
    assert (found.cause, found.next) == (cause, goes_on)
    assert found.nodes == ("node5" if cause == "node" else "")


def test_a_requeue_says_which_nodes_are_bad_once_the_job_is_pending(allocation: Allocation) -> None:
    allocation.place_text(XID, exclude="node9").run(SLURMD_NODENAME="node5", STUB_REQUEUE="yes")
    asked = (allocation.directory / "asked").read_text().splitlines()
    assert asked == ["scontrol requeue 42", "scontrol update JobId=42 ExcNodeList=node9,node5"]
    assert (allocation.attempt(2) / "submit").read_text() == "42\n"
    assert not (allocation.attempt(1) / "wanted").exists()


def test_without_a_requeue_the_next_job_comes_from_the_node(allocation: Allocation) -> None:
    allocation.place_text(XID).run(SLURMD_NODENAME="node5", STUB_SBATCH="77")
    assert (allocation.attempt(2) / "submit").read_text() == "77\n"
    logs = f"{allocation.directory}/attempts/2/main"
    token = f"job-{JOB_ID}-a2"
    assert (allocation.directory / "sbatch.words").read_text().splitlines() == [
        "--parsable",
        f"--job-name={token}",
        f"--output={logs}.out",
        f"--error={logs}.err",
        "--exclude=node5",
        f"{allocation.directory}/script/batch",
        "2",
    ]


def test_where_neither_is_allowed_the_next_attempt_is_wanted(allocation: Allocation) -> None:
    allocation.place_text(XID).run(SLURMD_NODENAME="node5")
    assert allocation.fields("wanted")["exclude"] == "node5"
    assert "the next client" in allocation.err()


def test_the_job_runs_on_bad_nodes_rather_than_never(allocation: Allocation) -> None:
    allocation.place_text(XID, exclude="node9").run(SLURMD_NODENAME="node5", STUB_FULL="yes")
    assert allocation.fields("wanted")["exclude"] == "node9"


@pytest.mark.parametrize(
    ("nodes", "excluded"), [("node4 node5 node6", "node9,node5"), ("node5 node9", "node9"), ("", "node9")]
)
def test_where_sbatch_cannot_tell_the_nodes_that_are_left_are_counted(
    allocation: Allocation, nodes: str, excluded: str
) -> None:
    """Else a job of a small partition waits for ever on a site that forbids sbatch on its nodes."""
    more: dict[str, Any] = {"STUB_REQUEUE": "yes", "STUB_FORBIDDEN": "yes", "STUB_NODES": nodes}
    allocation.place_text(XID, exclude="node9").run(SLURMD_NODENAME="node5", SLURM_JOB_PARTITION="small", **more)
    asked = (allocation.directory / "asked").read_text().splitlines()
    assert asked[0] == "scontrol requeue 42"
    assert asked[1:] == [f"scontrol update JobId=42 ExcNodeList={excluded}"]


def restart(allocation: Allocation, number: int, **more: Any) -> Decision:
    allocation.run(42, **{"SLURM_RESTART_COUNT": str(number - 1), "SLURMD_NODENAME": f"node{number}", **more})
    return decided(allocation, number)


def test_faults_have_a_budget_and_every_bad_node_is_left_out(allocation: Allocation) -> None:
    allocation.place_text(XID, retries=2)
    assert [restart(allocation, number, STUB_REQUEUE="yes").next for number in (1, 2, 3)] == [True, True, False]
    assert decided(allocation, 3).why == "it was started again as often as allowed (retries: 2)"
    assert "ExcNodeList=node1,node2" in (allocation.directory / "asked").read_text()
    allocation.run(SLURM_RESTART_COUNT="3")
    assert decided(allocation, 4).why == "it was started again as often as allowed (retries: 2)"
    assert not (allocation.attempt(4) / "exit" / "0").exists()


@pytest.mark.parametrize(("began", "cause"), [((1, 2), "ambiguous"), ((1,), "done")])
def test_starts_whose_nodes_never_came_up_leave_the_job_its_own(
    allocation: Allocation, began: tuple[int, ...], cause: str
) -> None:
    """Slurm puts a job back whose cloud node does not boot; once one boots, somebody wants it to run."""
    allocation.place_text("echo worked", retries=1)
    for number in began:
        allocation.attempt(number).mkdir(exist_ok=True)
        (allocation.attempt(number) / "start").write_text("time=1\n")
    allocation.run(SLURM_RESTART_COUNT="2")
    assert decided(allocation, 3).cause == cause


def test_a_command_that_was_done_is_not_started_again_by_slurm(allocation: Allocation) -> None:
    """The node died before slurmctld had heard of the script's end, and Slurm put the job back into the queue."""
    allocation.place_text("echo worked").run()
    assert allocation.run(SLURM_RESTART_COUNT="1") == 0
    assert (decided(allocation, 2).cause, decided(allocation, 2).next) == ("done", False)
    assert (allocation.fields("end", 2)["code"], allocation.fields("end", 2)["verdict"]) == ("0", "done")
    assert not (allocation.attempt(2) / "exit" / "0").exists()
    assert "attempt 1 was done" in allocation.err(2)


def test_without_progress_an_ambiguous_end_is_tried_three_times_more(allocation: Allocation) -> None:
    allocation.place_text("exit 1")
    assert [restart(allocation, number, STUB_REQUEUE="yes").next for number in (1, 2, 3, 4)] == [
        True,
        True,
        True,
        False,
    ]
    assert decided(allocation, 4).why == "it made no progress in 4 starts in a row"


LIMIT = "slurmstepd: error: *** JOB 42 ON node5 CANCELLED AT 2026-11-30T14:08:58 DUE TO TIME LIMIT ***\n"
WORKS = "trap 'exit 1' TERM; echo >\"$TOWLINE_RESULTS_DIR/c.pt\"; : >ready; while :; do sleep 0.02; done"


@pytest.mark.parametrize(("fields", "goes_on"), [({}, False), ({"resume": {"checkpoints": "*.pt"}}, True)])
def test_after_walltime_only_a_job_that_can_resume_goes_on(
    allocation: Allocation, fields: dict[str, Any], goes_on: bool
) -> None:
    job = allocation.place_text(WORKS, **fields).start(STUB_REQUEUE="yes", STUB_SBATCH="77")
    wait_for(allocation.directory / "ready")
    with (allocation.attempt(1) / "main.err").open("a") as file:
        file.write(LIMIT)
    job.terminate()
    job.wait(timeout=60)
    assert (decided(allocation).cause, decided(allocation).next) == ("time", goes_on)
    assert (allocation.attempt(2) / "submit").exists() == goes_on


def test_a_pause_costs_nothing_though_the_job_has_no_time_to_judge_it(allocation: Allocation) -> None:
    """Slurm kills the script soon after it was told to end, often while the command still saves its work."""
    stubborn = ': >ready; trap "" TERM; while [ ! -e "$TOWLINE_JOB_DIR/stop" ]; do sleep 0.02; done'
    job = allocation.place_text(stubborn, resume={"checkpoints": "*.pt"}, retries=0).start()
    wait_for(allocation.directory / "ready")
    (allocation.directory / "paused").touch()
    job.terminate()
    wait_for(allocation.attempt(1) / "decision")
    job.kill()
    job.wait(timeout=60)
    (allocation.directory / "stop").touch()
    assert (decided(allocation).cause, decided(allocation).next) == ("paused", False)
    allocation.run(SLURM_RESTART_COUNT="1")
    assert decided(allocation, 2).cause == "done"
    assert not (allocation.directory / "paused").exists()


def test_a_pause_while_the_next_attempt_is_decided_starts_none(allocation: Allocation) -> None:
    """The client puts the job back itself, held. The bad node is left out all the same."""
    text = f': >"$TOWLINE_JOB_DIR/paused"; {XID}'
    job = allocation.place_text(text, resume={"checkpoints": "*.pt"}).start(
        SLURMD_NODENAME="node5", STUB_REQUEUE="yes", STUB_SBATCH="77"
    )
    wait_for(allocation.attempt(1) / "end")
    job.terminate()
    job.wait(timeout=60)
    assert (decided(allocation).cause, decided(allocation).nodes) == ("node", "node5")
    asked = (allocation.directory / "asked").read_text().splitlines()
    assert asked == ["scontrol update JobId=42 ExcNodeList=node5"]
    assert not (allocation.attempt(2)).exists()


def test_a_pause_in_vain_keeps_no_attempt_from_starting(allocation: Allocation) -> None:
    job = allocation.place_text(f': >"$TOWLINE_JOB_DIR/paused"; {XID}').start(
        SLURMD_NODENAME="node5", STUB_REQUEUE="yes"
    )
    wait_for(allocation.attempt(1) / "end")
    (allocation.directory / "paused").unlink()
    job.wait(timeout=60)
    assert (allocation.attempt(2) / "submit").read_text() == "42\n"


LOUD = (
    "echo 'RuntimeError: CUDA error: device-side assert triggered' >&2",
    "echo 'RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB' >&2",
    f"echo 'node5:1:2 [0] NCCL INFO NET/IB : error while loading plugin; using internal' >&2; {TRACEBACK}",
    f"echo 'torch.cuda.is_available() is False: on the CPU' >&2; {TRACEBACK}",
    f"echo 'WARN: GPU temperature 71 C; ECC: no error' >&2; {TRACEBACK}",
)
"""What TAO's patterns take for faults of the site: the program's own errors, and words that mean none."""


@pytest.mark.parametrize("shell", LOUD)
def test_a_word_about_gpus_in_the_log_is_no_reason_to_start_again(allocation: Allocation, shell: str) -> None:
    allocation.place_text(f"{shell}; exit 1").run(SLURMD_NODENAME="node5", STUB_REQUEUE="yes")
    assert (decided(allocation).cause, decided(allocation).next) == ("user", False)
    assert not (allocation.directory / "asked").exists()


def test_a_command_that_asks_to_be_started_again_goes_on_while_it_moves(allocation: Allocation) -> None:
    text = 'n=$TOWLINE_ATTEMPT; [ "$n" -gt 2 ] || echo "$n" >"$TOWLINE_RESULTS_DIR/c$n.pt"; echo "$*+$X"; exit 9'
    resume: Any = {
        "checkpoints": "*.pt",
        "exit_code": 9,
        "args": ["--resume"],
        "env": {"X": "y"},
        "without_progress": 1,
    }
    allocation.place(command=("sh", "-c", text, "sh"), resume=resume, retries=0)
    found = [restart(allocation, number, STUB_REQUEUE="yes") for number in (1, 2, 3, 4)]
    assert [each.cause for each in found] == ["time"] * 4
    assert [each.progress for each in found] == [True, True, False, False]
    assert [each.next for each in found] == [True, True, True, False]
    assert [allocation.out(number) for number in (1, 2)] == ["+\n", "--resume+y\n"]


def test_a_job_that_forbids_it_is_never_started_again(allocation: Allocation) -> None:
    allocation.place_text(XID, restart="never").run(SLURMD_NODENAME="node5", STUB_REQUEUE="yes")
    assert (decided(allocation).cause, decided(allocation).next) == ("node", False)
    assert not (allocation.directory / "asked").exists()


def test_nothing_is_started_after_a_cancel(allocation: Allocation) -> None:
    allocation.place_text(f': >"$TOWLINE_JOB_DIR/cancelled"; {XID}').run(SLURMD_NODENAME="node5", STUB_REQUEUE="yes")
    assert (decided(allocation).next, decided(allocation).why) == (False, BY_CANCEL)
    assert not (allocation.directory / "asked").exists()


def test_nothing_is_started_when_somebody_else_did(allocation: Allocation) -> None:
    allocation.place_text(f'mkdir "$TOWLINE_JOB_DIR/attempts/2"; {XID}').run(
        SLURMD_NODENAME="node5", STUB_REQUEUE="yes"
    )
    assert not (allocation.directory / "asked").exists()


def test_tasks_end_when_a_later_attempt_has_begun(allocation: Allocation) -> None:
    job = allocation.place_text('mkdir "$TOWLINE_JOB_DIR/attempts/2"; sleep 60; echo too late').start()
    job.wait(timeout=30)
    until(lambda: (allocation.attempt(1) / "exit/0").exists(), 30, "the end of the task")
    assert "attempt 2 has begun" in allocation.err()
    assert allocation.out() == ""
    assert (decided(allocation).cause, decided(allocation).nodes) == ("node", "")


@pytest.mark.parametrize("survives", [False, True], ids=["srun is ended without a word", "srun hears of no failure"])
@pytest.mark.parametrize("on_term", ["exit 5", "exit 0"])
def test_an_attempt_with_a_successor_does_not_have_its_step_ended(
    allocation: Allocation, on_term: str, *, survives: bool
) -> None:
    """A job that Slurm has put back has the same ids, so that would end the successor's step."""
    if survives:
        srun = allocation.tools / "srun"
        srun.rename(allocation.tools / "real-srun")
        srun.write_text('#!/bin/sh\nreal-srun "$@" &\nwait\n')
        srun.chmod(0o755)
    command = f'trap "{on_term}" TERM; mkdir -p "$TOWLINE_JOB_DIR/attempts/2"; while :; do sleep 0.1; done'
    allocation.place_text(command, nodes=2, tasks_per_node=2).start().wait(timeout=30)
    exits = allocation.attempt(1) / "exit"
    until(lambda: all((exits / str(rank)).exists() for rank in range(4)), 30, "the end of the ranks")
    assert {(exits / str(rank)).read_text().split()[1] for rank in range(4)} == {"signal"}
    assert not (allocation.directory / "step-ended").exists()
    assert decided(allocation).cause == "node"


@pytest.mark.parametrize(
    ("times", "seconds"),
    [(("0:04", "1:03"), ""), (("0:04", "1:05"), "61"), (("1-00:00:02", "59:00", "2:00:00"), "82862"), ((), "")],
)
def test_components_that_slurm_has_not_put_back_together_begin_anew(
    allocation: Allocation, times: tuple[str, ...], seconds: str
) -> None:
    """Only the one whose node was lost gets its whole walltime again."""
    squeue = allocation.tools / "squeue"
    squeue.write_text("#!/bin/sh\n" + "".join(f"echo {each}\n" for each in times))
    squeue.chmod(0o755)
    spec = JobSpec.build(command=("echo", "ran"), resources={"time": "10m"})
    allocation.place_plan(spec)
    allocation.run(SLURM_HET_SIZE="2", SLURM_RESTART_COUNT="1", STUB_REQUEUE="yes")
    found = decided(allocation, 2)
    if not seconds:
        assert (found.cause, allocation.out(2)) == ("done", "ran\n")
        return
    assert (found.cause, found.next, allocation.out(2)) == ("infrastructure", True, "")
    assert f"running for {seconds} s more" in found.evidence
    assert (allocation.directory / "asked").read_text() == "scontrol requeue 42\n"


def test_the_gpus_are_asked_for_before_the_command(allocation: Allocation) -> None:
    smi = allocation.tools / "nvidia-smi"
    smi.write_text("#!/bin/sh\necho 'GPU 0: H100 (UUID: GPU-1)'\n")
    smi.chmod(0o755)
    spec = JobSpec.build(command=("echo", "ran"), resources={"gpus_per_node": 2})
    allocation.place_plan(spec).run(SLURMD_NODENAME="node5", STUB_SBATCH="77")
    found = decided(allocation)
    assert (found.cause, found.nodes, found.next) == ("node", "node5", True)
    assert found.evidence == "node5: 1 of the 2 GPUs are there"
    assert allocation.out() == ""
