"""Of all batch jobs that carry the same attempt, one runs; restarts do not write into each other's files."""

from __future__ import annotations

import os
from pathlib import Path

from tests.unit.launch.allocation import JOB_ID, Allocation
from towline.launch import records
from towline.launch.records import EndRecord, parse_end, parse_fields


def tree(folder: Path) -> dict[str, bytes | None]:
    paths = (path for path in folder.rglob("*"))
    return {str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None for path in paths}


def test_the_claim_names_the_slurm_job(allocation: Allocation) -> None:
    assert allocation.place(command=("true",)).run(42) == 0
    assert (allocation.attempt(1) / "claim").read_text() == "42\n"


def test_a_duplicate_writes_nothing_and_runs_nothing(allocation: Allocation) -> None:
    allocation.place(command=("echo", "ran"))
    assert allocation.run(42) == 0
    before = tree(allocation.directory)
    assert allocation.run(43) == records.DUPLICATE
    assert tree(allocation.directory) == before
    assert allocation.out() == "ran\n"


def test_one_of_two_at_once_runs(allocation: Allocation) -> None:
    for number in range(20):
        race = allocation.twin(f"race{number}").place(command=("echo", "ran"))
        jobs = {slurm_id: race.start(slurm_id) for slurm_id in (42, 43)}
        codes = {slurm_id: job.wait(timeout=60) for slurm_id, job in jobs.items()}
        assert sorted(codes.values()) == [0, records.DUPLICATE]
        owner = next(slurm_id for slurm_id, code in codes.items() if code == 0)
        assert (race.attempt(1) / "claim").read_text() == f"{owner}\n"
        assert race.out() == "ran\n"
        assert race.fields("start")["slurm_id"] == str(owner)
        assert not list(race.attempt(1).glob(".*"))


def test_a_file_system_without_hard_links(allocation: Allocation) -> None:
    (allocation.tools / "ln").write_text("#!/bin/sh\nexit 1\n")
    (allocation.tools / "ln").chmod(0o755)
    allocation.place(command=("sh", "-c", "exit 4"))
    assert allocation.run(42) == 4
    assert (allocation.attempt(1) / "claim").read_text() == "42\n"
    assert allocation.run(43) == records.DUPLICATE


def test_the_same_slurm_job_started_again_forgets_what_the_first_start_left(allocation: Allocation) -> None:
    allocation.place_text("[ -e again ] || { : >again; exit 7; }")
    assert allocation.run(42) == 7
    assert allocation.run(42) == 0
    assert allocation.end() == EndRecord("done", 0)


def test_a_cancelled_job_does_not_start(allocation: Allocation) -> None:
    allocation.place(command=("echo", "ran"))
    (allocation.directory / "cancelled").touch()
    assert allocation.run() == records.CANCELLED
    assert allocation.out() == ""
    assert allocation.end() == EndRecord("cancelled", records.CANCELLED, None, "cancelled")


def test_a_restart_is_an_attempt_of_its_own(allocation: Allocation) -> None:
    allocation.place_text('echo "start $TOWLINE_ATTEMPT"; echo oops >&2; exit "$TOWLINE_ATTEMPT"')
    assert allocation.run(42) == 1
    first = tree(allocation.attempt(1))
    assert allocation.run(42, SLURM_RESTART_COUNT="1") == 2
    assert tree(allocation.attempt(1)) == first
    assert (allocation.out(1), allocation.out(2)) == ("start 1\n", "start 2\n")
    assert (allocation.err(1), allocation.err(2)) == ("oops\n", "oops\n")
    assert allocation.end(2) == EndRecord("failed", 2, 0, "exit")
    assert allocation.fields("start", 2)["restart_count"] == "1"


def test_a_restart_whose_attempt_belongs_to_another_job_is_a_duplicate(allocation: Allocation) -> None:
    allocation.place(command=("true",))
    assert allocation.run(50, TOWLINE_ATTEMPT="2", SLURM_RESTART_COUNT="0") == 0
    assert allocation.run(42, SLURM_RESTART_COUNT="1") == records.DUPLICATE


def test_logs_are_linked_by_slurm_id(allocation: Allocation) -> None:
    allocation.place(command=("true",))
    allocation.run(42)
    allocation.run(42, SLURM_RESTART_COUNT="1")
    links = allocation.directory / "slurm-logs"
    assert {link.name: os.readlink(link) for link in links.iterdir()} == {
        "job-m3k9w2x4p-a1-42": "../attempts/1",
        "job-m3k9w2x4p-a1-42-r1": "../attempts/2",
    }


def test_a_link_that_is_there_stays(allocation: Allocation) -> None:
    allocation.place(command=("true",))
    link = allocation.directory / "slurm-logs" / "job-m3k9w2x4p-a1-42"
    link.parent.mkdir()
    link.symlink_to("../attempts/1")
    assert allocation.run(42) == 0
    assert os.readlink(link) == "../attempts/1"
    assert "1" not in {path.name for path in allocation.attempt(1).iterdir()}


def test_the_start_is_described(allocation: Allocation) -> None:
    allocation.place(command=("true",)).run(42)
    start = allocation.fields("start")
    assert start["slurm_id"] == "42"
    assert start["host"] == os.uname().nodename
    assert start["nodes"] == "node[5-6]"
    assert start["time"].isdigit()


def test_a_job_directory_that_is_gone(allocation: Allocation) -> None:
    allocation.place(command=("true",))
    (allocation.directory / "script/step").unlink()
    assert allocation.run() == records.UNUSABLE
    assert "cannot read" in allocation.err()


def test_files_are_private(allocation: Allocation) -> None:
    allocation.place(command=("touch", "made-by-the-command")).run()
    made = [path for path in allocation.attempt(1).rglob("*") if not path.name.startswith("main.")]
    made.append(allocation.directory / "made-by-the-command")
    assert {path.name: oct(path.stat().st_mode & 0o077) for path in made} == {path.name: "0o0" for path in made}


def test_tasks_of_an_array_share_the_claim_and_nothing_else(allocation: Allocation) -> None:
    allocation.place_text('echo "$TOWLINE_RESULTS_DIR" >"$TOWLINE_RESULTS_DIR/where"; exit "$SLURM_ARRAY_TASK_ID"')
    for task in (0, 3):
        assert allocation.run(50 + task, SLURM_ARRAY_JOB_ID="50", SLURM_ARRAY_TASK_ID=str(task)) == task
    assert (allocation.attempt(1) / "claim").read_text() == "50\n"
    assert parse_fields((allocation.attempt(1) / "task-3" / "start").read_text())["slurm_id"] == "50_3"
    assert parse_end((allocation.attempt(1) / "task-3" / "end").read_text()) == EndRecord("failed", 3, 0, "exit")
    results = allocation.directory / "results" / "3"
    assert (results / "where").read_text() == f"{results}\n"
    assert allocation.run(61, SLURM_ARRAY_JOB_ID="60", SLURM_ARRAY_TASK_ID="1") == records.DUPLICATE
    assert not (allocation.attempt(1) / "task-1").exists()
    assert [link.name for link in (allocation.directory / "slurm-logs").iterdir()] == [f"job-{JOB_ID}-a1-50"]


def test_a_cancelled_task_does_not_start_and_the_others_do(allocation: Allocation) -> None:
    allocation.place(command=("true",))
    (allocation.directory / "cancelled-1").touch()
    codes = [allocation.run(50, SLURM_ARRAY_JOB_ID="50", SLURM_ARRAY_TASK_ID=task) for task in "12"]
    assert codes == [records.CANCELLED, 0]
