"""The job's exit code is the command's, and Slurm gets it from the batch script."""

from __future__ import annotations

import shutil

import pytest

from tests.unit.launch.allocation import Allocation
from towline.launch.records import EndRecord


def failed(code: int, rank: int = 0, reason: str = "exit") -> EndRecord:
    return EndRecord("failed", code, rank, reason)


@pytest.mark.parametrize("code", [1, 2, 7, 120, 122, 126, 127, 128, 130, 137, 143, 200, 255])
def test_a_commands_code_comes_back(allocation: Allocation, code: int) -> None:
    allocation.place(command=("sh", "-c", f"exit {code}"))
    assert allocation.run() == code
    assert allocation.end() == failed(code)
    assert allocation.exits() == {"0": f"{code} self", "first": "0"}


def test_success(allocation: Allocation) -> None:
    allocation.place(command=("echo", "it's", "$HOME"), nodes=2)
    assert allocation.run() == 0
    assert allocation.end() == EndRecord("done", 0)
    assert allocation.out() == "it's $HOME\n" * 2
    assert allocation.err() == ""


@pytest.mark.parametrize(
    ("command", "code"),
    [
        (("no-such-program",), 127),
        (("/etc/passwd",), 126),
        (("sh", "-c", "kill -KILL $$"), 137),
        (("sh", "-c", "kill -SEGV $$"), 139),
        (("sh", "-c", "kill -TERM $$"), 143),
    ],
)
def test_commands_that_cannot_start_or_are_killed(allocation: Allocation, command: tuple[str, ...], code: int) -> None:
    assert allocation.place(command=command).run() == code
    assert allocation.end() == failed(code)


def test_shell_text_runs_to_its_end_and_gives_its_last_code(allocation: Allocation) -> None:
    allocation.place_text("false\necho 'go on'; exit 9\n")
    assert allocation.run() == 9
    assert allocation.out() == "go on\n"


ALL_READY = ': >"ready.$RANK"; for r in 0 1 2 3 4 5 6 7; do until [ -e ready.$r ]; do sleep 0.01; done; done'


def test_the_rank_that_failed_first_gives_the_code_and_not_its_siblings(allocation: Allocation) -> None:
    allocation.place_text(f'{ALL_READY}\n[ "$RANK" = 2 ] && exit 7\nexec sleep 60', nodes=4, tasks_per_node=2)
    assert allocation.run() == 7
    assert allocation.end() == failed(7, rank=2)
    assert allocation.fields("end")["srun"] == "143"
    exits = allocation.exits()
    assert exits["first"] == "2"
    assert exits["2"] == "7 self"
    assert {exits[str(rank)] for rank in range(8) if rank != 2} == {"143 signal"}


def test_siblings_that_are_stopped_while_they_start_change_nothing(allocation: Allocation) -> None:
    for number in range(10):
        job = allocation.twin(f"start{number}").place_text('[ "$RANK" = 0 ] && exit 7\nexec sleep 60', nodes=4)
        assert job.run() == 7
        assert job.end() == failed(7)


def test_a_sibling_that_handles_the_signal_and_fails_is_not_the_first(allocation: Allocation) -> None:
    waiting = "trap 'exit 1' TERM; : >ready; while :; do sleep 0.02; done"
    failing = "until [ -e ready ]; do sleep 0.01; done; exit 3"
    allocation.place_text(f'if [ "$RANK" = 0 ]; then {waiting}; else {failing}; fi', nodes=2)
    assert allocation.run() == 3
    assert allocation.exits() == {"0": "1 signal", "1": "3 self", "first": "1"}


def test_a_rank_without_a_record_is_no_success(allocation: Allocation) -> None:
    allocation.place(command=("true",), nodes=2)
    assert allocation.run(SLURM_STUB_TASKS="1") == 1
    assert allocation.end() == EndRecord("failed", 1, None, "lost")


def test_srun_cannot_turn_a_failure_into_success(allocation: Allocation) -> None:
    assert allocation.place(command=("false",)).run(SLURM_STUB_SAYS="0") == 1
    assert allocation.end() == failed(1)


def test_a_step_that_srun_calls_failed_is_no_success(allocation: Allocation) -> None:
    assert allocation.place(command=("true",)).run(SLURM_STUB_SAYS="125") == 125
    assert allocation.end() == EndRecord("failed", 125, None, "step")


@pytest.mark.parametrize("code", [1, 255])
def test_a_container_that_does_not_start(allocation: Allocation, code: int) -> None:
    assert allocation.place(command=("true",)).run(SLURM_STUB_FAILS=str(code)) == code
    assert allocation.end() == EndRecord("failed", code, None, "launch")
    assert "pyxis: failed to create" in allocation.err()


def test_no_srun_on_the_node(allocation: Allocation) -> None:
    allocation.place(command=("true",))
    (allocation.tools / "srun").unlink()
    for name in (allocation.shell[0], "cat", "date", "head", "ln", "mkdir", "mv", "rm", "uname"):
        (allocation.tools / name).symlink_to(str(shutil.which(name)))
    assert allocation.run(PATH=str(allocation.tools)) == 127
    assert allocation.end() == EndRecord("failed", 127, None, "launch")


@pytest.mark.parametrize("first", ["", "x", "7", "-1", "1 2", "0" * 200, "$(exit 3)", "../exit/0"])
def test_a_mark_that_makes_no_sense_is_not_believed(allocation: Allocation, first: str) -> None:
    mark = 'printf "%s\\n" "$MARK" >"$TOWLINE_JOB_DIR/attempts/1/exit/first"; exit 5'
    allocation.place_text(mark, env={"MARK": first})
    assert allocation.run() == 5
    assert allocation.end() == failed(5)


def test_a_record_that_cannot_be_written_does_not_change_the_code(allocation: Allocation) -> None:
    remove = 'rm -rf "$TOWLINE_JOB_DIR/attempts/1/exit"; : >"$TOWLINE_JOB_DIR/attempts/1/exit"'
    assert allocation.place_text(f"{remove}; exit 6").run() == 6
    assert "exit code 6 could not be recorded" in allocation.err()


def test_a_rank_that_began_and_left_no_record_is_lost(allocation: Allocation) -> None:
    assert allocation.place_text('kill -KILL "$PPID"').run() == 137
    assert allocation.end() == EndRecord("failed", 137, None, "lost")
