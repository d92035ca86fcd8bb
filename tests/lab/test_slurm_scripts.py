"""The Slurm room's scripts against a real Slurm, over a real ssh."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from towline.config.files import load_profile
from towline.engine.reaching import open_remote
from towline.lab import Lab
from towline.models.job import JobState
from towline.remote.base import Operation, Outcome
from towline.slurm.batch import BatchJob, render_batch
from towline.slurm.calls import (
    Call,
    PollTarget,
    Submission,
    cancel_call,
    facts_call,
    poll_call,
    stage_call,
    submit_call,
)
from towline.slurm.cancel import parse_cancel
from towline.slurm.commands import sbatch
from towline.slurm.parse import SlurmId
from towline.slurm.poll import PollAnswer, parse_poll
from towline.slurm.refusals import RefusalKind
from towline.slurm.site import parse_facts
from towline.slurm.submission import Came, ScriptExit, SubmitAnswer, parse_submission

COMMENT = """{"OccupiedIdleGPUsJobReaper":{"exemptIdleTimeMins":"60"}} # it's \\a \\\\ $HOME hetjob ü"""
SECONDS = 60


class Desk:
    """A root of its own on the shared disk, and one connection."""

    def __init__(self, lab: Lab) -> None:
        self.lab = lab
        self.root = f"/lustre/alice/slurm-tests/{secrets.token_hex(4)}"

    def alice(self, *argv: str) -> str:
        return self.lab.run_on("login1", argv, user="alice", check=True).stdout

    def shell(self, line: str, user: str = "alice") -> str:
        return self.lab.run_on("login1", ["sh", "-c", line], user=user, check=True).stdout

    def calls(self, *calls: Call) -> list[Outcome]:
        return asyncio.run(_run(calls))

    def job(self, at: str = "", **values: Any) -> tuple[BatchJob, Submission]:
        root, job_id = at or self.root, "k" + secrets.token_hex(4)
        directory, token = f"{root}/jobs/{job_id}", f"labtest-slurm-{job_id}-a1"
        batch = replace(BatchJob(directory, job_id, token, time=120), **values)
        return batch, Submission(root, job_id, 1, token, sbatch(f"{directory}/script/batch"), time.time())

    def stage(self, batch: BatchJob, submission: Submission, supervisor: str = "exit 0") -> SubmitAnswer:
        files = {"script/batch": render_batch(batch).encode(), "script/supervisor": supervisor.encode()}
        return answer_of(self.calls(stage_call(submission, files))[0])

    def poll(self, submission: Submission, slurm: SlurmId | None) -> PollAnswer:
        outcome = self.calls(poll_call(submission.root, [PollTarget(submission.job_id, 1, slurm)]))[0]
        assert outcome.ok, outcome
        answer = parse_poll(outcome.stdout.decode())
        assert answer.complete
        return answer

    def until_ended(self, submission: Submission, slurm: SlurmId) -> PollAnswer:
        """Polls until accounting knows the job's end."""
        deadline = time.monotonic() + SECONDS
        while time.monotonic() < deadline:
            answer = self.poll(submission, slurm)
            history = answer.history(slurm)
            if history and history.newest.state.ended:
                return answer
        raise AssertionError(f"job {slurm} did not end")


async def _run(calls: tuple[Call, ...]) -> list[Outcome]:
    remote = open_remote(load_profile("lab"))
    try:
        made = [Operation(call.name, call.script, call.args, call.files, SECONDS, call.survives) for call in calls]
        return list(await asyncio.gather(*(remote.run(operation) for operation in made)))
    finally:
        await remote.close()


def answer_of(outcome: Outcome) -> SubmitAnswer:
    assert outcome.exit_code is not None, outcome
    return parse_submission(outcome.exit_code, outcome.stdout.decode(), outcome.stderr.decode())


def accepted(answer: SubmitAnswer) -> SlurmId:
    assert answer.exit is ScriptExit.OK, answer
    assert answer.slurm is not None
    return answer.slurm


@pytest.fixture
def desk(lab: Lab) -> Iterator[Desk]:
    desk = Desk(lab)
    desk.alice("mkdir", "-p", desk.root)
    yield desk
    desk.shell("scancel -u alice -n $(squeue -h -u alice -o %j | grep ^labtest-slurm | paste -sd,) 2>/dev/null; true")
    desk.shell(f"rm -rf {desk.root}", user="root")


def test_the_cluster_says_what_it_is(desk: Desk) -> None:
    facts = parse_facts(desk.calls(facts_call())[0].stdout.decode())
    default = facts.default_partition
    assert default is not None
    assert (default.name, default.max_time, default.nodes) == ("batch", 4 * 3600, 4)
    assert (default.gpus_per_node, default.gpu_types) == (8, ("h100",))
    cpu = facts.partition("cpu")
    assert cpu is not None
    assert (cpu.gpus_per_node, cpu.nodes) == (0, 1)
    assert facts.version.startswith("22.05")


def test_every_value_reaches_slurm_as_it_is_meant(desk: Desk) -> None:
    root = f"{desk.root}/100% it's hetjob"
    batch, submission = desk.job(
        root,
        nodes=2,
        gpus_per_node=2,
        gpu_type="h100",
        cpus_per_task=2,
        memory=512,
        partition=("batch",),
        exclude="node4",
        comment=COMMENT,
        requeue=False,
    )
    slurm = accepted(desk.stage(batch, submission, 'echo "in $(pwd)"; exit 3'))
    shown = desk.alice("scontrol", "show", "job", slurm.id)
    for fact in ("Requeue=0", "ExcNodeList=node4", "NumNodes=2", "TimeLimit=00:02:00"):
        assert fact in shown
    assert desk.alice("squeue", "-h", "-t", "all", "-j", slurm.id, "-o", "%k").rstrip("\n") == COMMENT
    answer = desk.until_ended(submission, slurm)
    history = answer.history(slurm)
    assert history is not None
    assert history.newest.exit is not None
    assert (history.newest.state, history.newest.exit.code) == (JobState.FAILED, 3)
    out = desk.alice("cat", f"{submission.directory}/slurm-logs/{submission.token}-{slurm.id}/main.out")
    assert out == f"in {submission.directory}\n"
    assert answer.attempts[submission.job_id, 1, None].slurm == slurm


OUTSIDE = "MINE=1 SLURM_CPU_BIND=none SBATCH_PARTITION=nosuch SBATCH_QOS=nosuch PMI_RANK=3 RANK=7 MASTER_ADDR=old"


@pytest.mark.parametrize("everything", [False, True])
def test_a_job_submitted_from_within_a_job_finds_nothing_of_it(desk: Desk, everything: bool) -> None:
    """As the local twin does it in an allocation: with the whole environment handed on, and without."""
    batch, submission = desk.job(export_all=everything)
    supervisor = b"env | sort >env; exit 0"
    call = stage_call(submission, {"script/batch": render_batch(batch).encode(), "script/supervisor": supervisor})
    place = desk.lab.paths.lustre / desk.root.removeprefix("/lustre/") / "call"
    for name, content in {**call.files, "script": call.script.encode()}.items():
        assert isinstance(content, bytes)
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_bytes(content)
    desk.shell(f"chown -R alice {desk.root}", user="root")
    step = ("srun", "--nodes=2", "--ntasks-per-node=1", "--gres=gpu:2", "--mpi=pmi2", "env", *OUTSIDE.split())
    within = f'[ "$SLURM_PROCID" = 1 ] || exit 0; cd {desk.root}/call; . ./script'
    answer = parse_submission(0, desk.alice(*step, "sh", "-c", within, "sh", *call.args), "")
    desk.until_ended(submission, accepted(answer))
    lines = desk.shell(f"cat {submission.directory}/env").splitlines()
    found = dict(line.split("=", 1) for line in lines if "=" in line)
    assert (found["SLURM_JOB_ID"], found["SLURM_NNODES"]) == (accepted(answer).id, "1")
    assert found["SLURM_CONF"] == "/etc/slurm/slurm.conf"
    assert ("MINE" in found) == everything
    gone = ("SLURM_STEP_ID", "SLURM_CPU_BIND", "SLURM_STEP_GPUS", "SLURM_MPI_TYPE", "SLURM_STEP_NODELIST")
    assert not [name for name in (*gone, "RANK", "MASTER_ADDR", "CUDA_VISIBLE_DEVICES") if name in found]
    assert not [name for name in found if name.startswith(("PMI", "SBATCH", "SRUN", "_SLURM"))]


def test_a_lost_answer_is_found_in_queue_and_in_accounting(desk: Desk) -> None:
    batch, submission = desk.job()
    slurm = accepted(desk.stage(batch, submission, "sleep 600"))
    forget = f"cd {submission.directory}/attempts/1; rm submit; touch -d '1 hour ago' submitter"
    desk.shell(forget)
    found = answer_of(desk.calls(submit_call(submission))[0])
    assert (found.slurm, found.came) == (slurm, Came.QUEUE)
    cancelled = parse_cancel(desk.calls(cancel_call(submission.directory, submission.token))[0].stdout.decode())
    assert (cancelled.marked, cancelled.told, cancelled.failed) == (True, (slurm,), "")
    history = desk.until_ended(submission, slurm).history(slurm)
    assert history is not None
    assert history.newest.state is JobState.CANCELLED
    assert answer_of(desk.calls(submit_call(submission))[0]).came is Came.RECORDED
    desk.shell(f"{forget}; rm ../../cancelled")
    assert answer_of(desk.calls(submit_call(submission))[0]).slurm == slurm


def test_submitters_at_once_make_one_job(desk: Desk) -> None:
    batch, submission = desk.job()
    files = {"script/batch": render_batch(batch).encode(), "script/supervisor": b"exit 0\n"}
    answers = [answer_of(outcome) for outcome in desk.calls(*[stage_call(submission, files)] * 4)]
    assert {answer.exit for answer in answers} <= {ScriptExit.OK, ScriptExit.IN_FLIGHT}
    slurm = accepted(answer_of(desk.calls(submit_call(submission))[0]))
    desk.until_ended(submission, slurm)
    named = desk.alice("squeue", "-h", "-t", "all", "-o", "%A", f"--name={submission.token}")
    assert named.split() == [slurm.id]


@pytest.mark.parametrize(
    ("values", "code"),
    [
        ({"partition": ("nosuch",)}, "partition"),
        ({"account": "nosuch"}, "account"),
        ({"qos": "nosuch"}, "qos"),
        ({"gpus_per_node": 9}, "resources"),
        ({"memory": 10**9}, "memory"),
    ],
)
def test_what_slurm_refuses_is_understood_and_may_be_tried_again(desk: Desk, values: dict[str, Any], code: str) -> None:
    batch, submission = desk.job(**values)
    for _ in range(2):
        answer = desk.stage(batch, submission)
        assert answer.exit is ScriptExit.REFUSED
        assert answer.refusal is not None
        assert (answer.refusal.kind, answer.refusal.code) == (RefusalKind.PERMANENT, code)
        assert desk.shell(f"ls -A {desk.root}/jobs {desk.root}/results").split() == [
            f"{desk.root}/jobs:",
            f"{desk.root}/results:",
        ]


def test_one_and_two_unknown_ids_are_answers(desk: Desk) -> None:
    for ids in (["999999"], ["999998", "999999"]):
        targets = [PollTarget(f"none{number}", 1, SlurmId(number)) for number in ids]
        answer = parse_poll(desk.calls(poll_call(desk.root, targets))[0].stdout.decode())
        assert answer.complete
        assert [query.answered for query in answer.queries] == [True, True]
        assert (dict(answer.queue), dict(answer.accounting)) == ({}, {})


def test_a_requeued_job_shows_its_earlier_run(desk: Desk) -> None:
    batch, submission = desk.job()
    slurm = accepted(desk.stage(batch, submission, '[ "$SLURM_RESTART_COUNT" ] || exec sleep 600'))
    deadline = time.monotonic() + SECONDS
    while (row := desk.poll(submission, slurm).row(slurm)) is None or row.state is not JobState.RUNNING:
        assert time.monotonic() < deadline
    desk.alice("scontrol", "requeue", slurm.id)
    history = desk.until_ended(submission, slurm).history(slurm)
    assert history is not None
    assert [run.word for run in history.earlier] == ["REQUEUED"]
    assert history.newest.state is JobState.SUCCEEDED


def test_a_full_disk_is_told_and_nothing_half_made_stays(desk: Desk) -> None:
    small = f"{desk.root}/small"
    desk.shell(f"mkdir {small} && mount -t tmpfs -o size=64k,uid=2001,mode=700 small {small}", user="root")
    try:
        batch, submission = desk.job(small)
        answer = desk.stage(batch, submission, "#" * 100_000)
        assert answer.exit is ScriptExit.NO_SPACE
        assert "No space left" in answer.notices
        assert desk.alice("ls", "-A", f"{small}/jobs") == ""
    finally:
        desk.shell(f"umount {small}", user="root")


def test_a_directory_of_somebody_else_is_not_adopted(desk: Desk) -> None:
    desk.shell(f"mkdir -p {desk.root}/jobs && chown bob {desk.root}/jobs && chmod 755 {desk.root}/jobs", user="root")
    batch, submission = desk.job()
    assert desk.stage(batch, submission).exit is ScriptExit.UNSAFE
    batch, submission = desk.job("/lustre/bob/towline")
    assert desk.stage(batch, submission).exit is ScriptExit.BAD_ROOT
