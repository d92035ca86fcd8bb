"""Secrets in the allocation: the command has them byte for byte, and the file is gone when nobody needs it any more."""

from __future__ import annotations

import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.launch.allocation import SHELLS, Allocation
from tests.unit.launch.test_ranks import wait_for
from towline.launch import records
from towline.launch.files import NAMES_OF_SECRETS, SECRETS, LaunchPlan, job_files, secrets_file
from towline.launch.records import EndRecord
from towline.models.secrets import MAX_SECRET_BYTES, Secret
from towline.models.spec import JobSpec

SHOW = 'printf %s "$TOKEN" >"$TOWLINE_RESULTS_DIR/token.$NODE_RANK"'
VALUE = 'it\'s "$5" `x`\n\\ é'


def place(allocation: Allocation, text: str, **fields: int) -> Allocation:
    allocation.place_text(text, secrets=("TOKEN",), **fields)
    (allocation.directory / SECRETS).write_bytes(secrets_file({"TOKEN": Secret(VALUE)}))
    return allocation


def kept(allocation: Allocation) -> bool:
    return (allocation.directory / SECRETS).exists()


nasty = st.text(st.sampled_from("'\"\\$`!\n\r\t *?[]{}~#&|;<>()=%éß中🙂\x01\x7f\x81\x88"), min_size=1, max_size=12)
raw = st.binary(min_size=1, max_size=40).filter(lambda value: b"\0" not in value)


@pytest.mark.parametrize("shell", SHELLS, ids=lambda shell: shell[0])
@given(value=nasty | raw)
@settings(max_examples=40, deadline=None)
def test_any_value_comes_through(shell: tuple[str, ...], value: str | bytes) -> None:
    script = secrets_file({"NAME": Secret(value)}) + b"exec printenv NAME"
    environment = {"PATH": "/usr/bin:/bin"}
    done = subprocess.run([*shell, "-s"], input=script, capture_output=True, check=True, env=environment)
    assert done.stdout == Secret(value).reveal() + b"\n"


def test_a_value_of_the_largest_size_arrives(allocation: Allocation) -> None:
    place(allocation, 'printf %s "${#TOKEN}"')
    (allocation.directory / SECRETS).write_bytes(secrets_file({"TOKEN": Secret("é" * (MAX_SECRET_BYTES // 2))}))
    assert allocation.run(LC_ALL="C") == 0
    assert allocation.out() in (str(MAX_SECRET_BYTES), str(MAX_SECRET_BYTES // 2))


def test_every_rank_has_them_and_they_go_when_the_job_is_done(allocation: Allocation) -> None:
    assert place(allocation, SHOW, nodes=2).run() == 0
    for rank in "01":
        assert (allocation.directory / f"results/token.{rank}").read_text() == VALUE
    assert not kept(allocation)


def test_they_go_when_the_job_has_failed_or_was_cancelled_before_it_began(allocation: Allocation) -> None:
    assert place(allocation, "exit 7").run() == 7
    assert not kept(allocation)
    place(allocation, "exit 0")
    (allocation.directory / "cancelled").touch()
    assert allocation.run() == records.CANCELLED
    assert not kept(allocation)


def test_they_stay_where_slurm_may_start_the_job_again(allocation: Allocation) -> None:
    job = place(allocation, ": >ready; exec sleep 60").start()
    wait_for(allocation.directory / "ready")
    job.terminate()
    assert job.wait(timeout=60) == 143
    assert kept(allocation)
    (allocation.directory / "ready").unlink()
    (allocation.directory / "script/entrypoint").write_text('printf %s "$TOKEN"')
    assert allocation.run(SLURM_RESTART_COUNT="1") == 0
    assert allocation.out(2) == VALUE
    assert not kept(allocation)


def test_they_stay_for_the_other_tasks_of_an_array_and_for_the_owner_of_the_attempt(allocation: Allocation) -> None:
    assert place(allocation, "true").run(42, SLURM_ARRAY_JOB_ID="40") == 0
    assert kept(allocation)
    assert allocation.run(43) == records.DUPLICATE
    assert kept(allocation)


def test_without_them_the_command_does_not_run(allocation: Allocation) -> None:
    place(allocation, "echo ran")
    (allocation.directory / SECRETS).unlink()
    assert allocation.run() == records.UNUSABLE
    assert allocation.end() == EndRecord("failed", records.UNUSABLE, 0, "exit")
    assert "secrets; it is removed once the job is over for good" in allocation.err()
    assert allocation.out() == ""


def test_a_plan_has_names_only() -> None:
    files = job_files(LaunchPlan(JobSpec.build(shell="true", secrets=("A", "B")), "k1", "/lustre/k1"))
    assert files[NAMES_OF_SECRETS] == b"A\nB\n"
    assert SECRETS not in files
