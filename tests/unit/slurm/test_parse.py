"""Reading what Slurm's commands print, across versions and in spite of what sites print around it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from towline.models.job import JobState
from towline.slurm.parse import (
    ExitCode,
    SlurmId,
    parse_exit_code,
    parse_sacct,
    parse_sbatch,
    parse_squeue,
    parse_time,
)

NOTICES = "sbatch: Your account has 3 h left\n--> Verifying valid submit host...OK\n"
BANNER = "-----\n  Welcome to the Stampede3 Supercomputer\n-----\n--> Verifying valid jobname...OK (job 7)\n\n"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("41\n", SlurmId("41")),
        ("41;gpu\n", SlurmId("41", "gpu")),
        ("75168975;cluster.name-1\n", SlurmId("75168975", "cluster.name-1")),
        ("Submitted batch job 7\n", SlurmId("7")),
        ("Submitted batch job 7 on cluster X\n", SlurmId("7", "X")),
        (f"{NOTICES}41;gpu\n", SlurmId("41", "gpu")),
        (f"{BANNER}Submitted batch job 7\n", SlurmId("7")),
        (f"{BANNER}41\r\n\n", SlurmId("41")),
        ("41\nSubmitted batch job 41\n", SlurmId("41")),
    ],
)
def test_sbatch_answers(text: str, expected: SlurmId) -> None:
    assert parse_sbatch(text) == expected
    assert parse_sbatch(str(expected)) == expected


@pytest.mark.parametrize("text", ["", BANNER, "41 42\n", "41;\n", "job 41\n", "41\n42\n", "-41\n", "4 1\n", "41;a b\n"])
def test_answers_without_one_id_are_refused(text: str) -> None:
    with pytest.raises(ValueError):
        parse_sbatch(text)


def test_queue_rows() -> None:
    text = (
        "CLUSTER: gpu\n"
        "Welcome to Stampede3\n"
        "41|RUNNING|1700000000|1700000010|1700003600|4|node[1-3,7]|None\n"
        "12_[4-9]|PENDING|1700000000|N/A|N/A|1||Nodes required for job are DOWN, DRAINED or reserved | odd\n"
        "13+1|COMPLETING|1700000000|1700000010|1700003600|1|node1|None\n"
        "42|FOO_BAR|Unknown|None|0|x|(null)|(null)\n"
    )
    running, array, het, odd = parse_squeue(text)
    assert (running.node_count, running.nodes, running.ended) == (4, "node[1-3,7]", 1700003600)
    assert (array.id, array.state, array.started) == ("12_[4-9]", JobState.PENDING, None)
    assert array.reason == "Nodes required for job are DOWN, DRAINED or reserved | odd"
    assert (het.id, het.state, het.word) == ("13+1", JobState.RUNNING, "COMPLETING")
    assert (odd.state, odd.submitted, odd.started, odd.node_count, odd.nodes) == (
        JobState.UNKNOWN,
        None,
        None,
        None,
        "",
    )


def test_an_id_with_several_rows_is_a_job_with_several_runs() -> None:
    text = (
        "77|NODE_FAIL|0:0|100|110|120|cloud1\n"
        "77|NODE_FAIL|0:0|130|140|150|cloud1\n"
        "77|RUNNING|0:0|160|170|Unknown|cloud1\n"
        "78|CANCELLED by 2001|0:0|100|None|120|None assigned\n"
        "57_1|FAILED|1:0|100|110|120|node1\n"
    )
    rows = parse_sacct(text)
    assert set(rows) == {"77", "78", "57_1"}
    assert (rows["77"].newest.word, rows["77"].newest.ended) == ("RUNNING", None)
    assert [row.ended for row in rows["77"].earlier] == [120, 150]
    cancelled = rows["78"].newest
    assert (cancelled.word, cancelled.state, cancelled.started) == ("CANCELLED", JobState.CANCELLED, None)
    assert cancelled.nodes == ""
    assert rows["57_1"].newest.exit == ExitCode(1)


def test_the_newest_run_counts_whatever_the_order() -> None:
    rows = parse_sacct("9|COMPLETED|0:0|200|210|220|n\n9|PREEMPTED|0:0|100|110|120|n\n")
    assert rows["9"].newest.word == "COMPLETED"


def test_the_part_before_a_job_was_resized_is_no_run_of_its_own() -> None:
    rows = parse_sacct("9|REQUEUED|0:0|1|2|3|n\n9|RESIZING|0:0|4|5|6|n[1-2]\n9|COMPLETED|0:0|6|5|9|n1\n")
    assert [row.word for row in rows["9"].earlier] == ["REQUEUED"]


@pytest.mark.parametrize(
    ("text", "expected", "status"),
    [
        ("137:0", ExitCode(137), 137),
        ("9:0", ExitCode(9), 9),
        ("0:15", ExitCode(0, 15), 143),
        ("0:53", ExitCode(0, 53), 181),
        ("0:125", ExitCode(0, 125), 125),
        ("0:0", ExitCode(0), 0),
    ],
)
def test_exit_codes(text: str, expected: ExitCode, status: int) -> None:
    assert parse_exit_code(text) == expected
    assert expected.status == status


@pytest.mark.parametrize("text", ["", "None", "Unknown", "1", "1:2:3", "a:b"])
def test_what_is_no_exit_code_is_not_known(text: str) -> None:
    assert parse_exit_code(text) is None


@pytest.mark.parametrize("text", ["N/A", "None", "Unknown", "", "0", "-1", "2026-11-30T00:28:33", "NONE"])
def test_times_that_are_not_known_are_none(text: str) -> None:
    assert parse_time(text) is None


@given(st.text())
def test_no_text_breaks_the_parsers(text: str) -> None:
    parse_squeue(text)
    parse_sacct(text)
    parse_time(text)
    parse_exit_code(text)
