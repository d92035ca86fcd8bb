"""From lines and facts to a diagnosis."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from towline.launch.diagnosis.verdict import Facts, Hit, hits_of, judge, node_of, parse_facts, rank_of, rule_of
from towline.launch.diagnosis.words import end_of, failure_of

NAMES = st.text("abcdefgh0123456789-", min_size=1, max_size=8)


def hit(text: str, file: str = "main.err") -> Hit:
    rule = rule_of("KeyError: 1")
    assert rule is not None
    return Hit(rule, text, file, 0)


@pytest.mark.parametrize(
    ("text", "file", "rank"),
    [
        ("[rank3]: KeyError: 1", "main.err", 3),
        ("[rank0]:[E ProcessGroupNCCL.cpp:616] [Rank 0] Watchdog", "main.err", 0),
        ("12: KeyError: 1", "main.err", 12),
        ("srun: error: gpu2: task 7: Exited with exit code 1", "main.err", 7),
        ("KeyError: 1", "ranks/5-gpu1.err", 5),
        ("[rank6]: KeyError: 1", "ranks/5-gpu1.err", 6),
        ("KeyError: 1", "main.err", None),
    ],
)
def test_the_rank_is_the_lines_or_the_files(text: str, file: str, rank: int | None) -> None:
    assert rank_of(hit(text, file)) == rank


@pytest.mark.parametrize(
    ("text", "file", "node"),
    [
        ("slurmstepd-gpu1: error: x", "main.err", "gpu1"),
        ("srun: error: gpu2: task 7: Out Of Memory", "main.err", "gpu2"),
        ("gpu2.example.org: x", "main.err", "gpu2"),
        ("between gpu1 and gpu2", "main.err", ""),
        ("x", "nodes/1-gpu2.out", "gpu2"),
        ("[rank9]: x", "main.err", "gpu2"),
        ("gpu21 is no node of this job", "main.err", ""),
    ],
)
def test_the_node_is_one_of_the_jobs(text: str, file: str, node: str) -> None:
    assert node_of(hit(text, file), Facts(nodes=("gpu1", "gpu2"), ranks={9: "gpu2"})) == node


def test_ranks_are_placed_by_what_srun_says_at_their_end() -> None:
    log = "[rank9]: CUDA error: uncorrectable ECC error encountered\nsrun: error: gpu2: tasks 8-15: Killed\n"
    found = judge(Facts(nodes=("gpu1", "gpu2")), hits_of("main.err", log))
    assert found is not None
    assert (found.kind, found.node, found.blames) == ("node", "gpu2", True)


def test_a_traceback_that_python_only_tells_of_is_nothing() -> None:
    log = "Exception ignored in: <function Tqdm.__del__>\nTraceback (most recent call last):\nAttributeError: x\n"
    found = judge(Facts(slurm=("state=TIMEOUT",)), hits_of("main.err", log))
    assert found is not None
    assert found.kind == "time"


LIMIT = "slurmstepd: error: *** JOB 7 ON gpu1 CANCELLED AT 2026-11-30T00:34:39 DUE TO TIME LIMIT ***\n"
ERROR = "Traceback (most recent call last):\n  File 'train.py', line 3\nFileNotFoundError: /data/x\n"


@pytest.mark.parametrize(
    ("log", "kind"),
    [
        (ERROR, "user"),
        (ERROR + LIMIT, "user"),
        (f"{ERROR}other ranks keep waiting in all_reduce\n\n{LIMIT}", "user"),
        (f"rank 6: TypeError: x\n{LIMIT}", "user"),
        (f"{ERROR}step 3 loss 0.1\n{LIMIT}", "time"),
        (f"{ERROR}[I 2026-11-30 00:30:00] Trial 14 finished\n{LIMIT}", "time"),
        (LIMIT + ERROR, "time"),
        (f"WARNING: KeyError: 'caption'\n{LIMIT}", "time"),
    ],
)
def test_an_error_that_nothing_but_the_end_of_the_time_follows_is_why_the_others_waited(log: str, kind: str) -> None:
    found = judge(Facts(slurm=("state=TIMEOUT",)), hits_of("main.err", log))
    assert found is not None
    assert found.kind == kind
    assert (found.retry == "no") == (kind == "user")


XID = "Jan 11 03:12:09 gpu1 kernel: NVRM: Xid (PCI:0000:3b:00): 79, pid=2211, GPU has fallen off the bus.\n"
SAMPLES = f"--- samples at step 4000 ---\n{XID}KeyError: 'x'\n"


@pytest.mark.parametrize(
    ("log", "kind"),
    [
        (SAMPLES, "user"),
        (f"{SAMPLES}--- end of samples ---\n{XID}", "node"),
        (f"{SAMPLES}[rank1]: Traceback (most recent call last):\n{XID}", "node"),
        (f"{SAMPLES}{'a sample goes on ' * 400}\n{XID}", "node"),
    ],
)
def test_in_a_text_that_only_tells_of_faults_the_commands_own_errors_alone_count(log: str, kind: str) -> None:
    found = judge(Facts(nodes=("gpu1", "gpu2")), hits_of("main.out", log))
    assert found is not None
    assert found.kind == kind


def test_an_exception_raised_for_another_one_is_its_echo() -> None:
    log = (
        "google.api_core.exceptions.ServiceUnavailable: 503 POST https://x.org\n\n"
        "The above exception was the direct cause of the following exception:\n\n"
        "Traceback (most recent call last):\nck.CheckpointError: shard 3\n"
    )
    found = judge(Facts(), hits_of("main.err", log))
    assert found is not None
    assert found.kind == "infrastructure"
    again = judge(Facts(), hits_of("main.err", f"{log}KeyError: 'x'\n"))
    assert again is not None
    assert again.kind == "user"


def test_nothing_known_is_no_diagnosis() -> None:
    assert judge(Facts(slurm=("state=COMPLETED",)), hits_of("main.out", "step 3\n")) is None


@given(
    st.lists(NAMES, max_size=4, unique=True),
    st.none() | st.integers(0, 9999),
    st.dictionaries(st.integers(0, 99), NAMES, max_size=4),
    st.lists(st.sampled_from(["state=FAILED", "exit=0:53", "step=0 OUT_OF_MEMORY 0:125"]), max_size=3),
)
def test_facts_are_read_as_they_were_written(
    nodes: list[str], rank: int | None, ranks: dict[int, str], slurm: list[str]
) -> None:
    facts = Facts(
        slurm=tuple(slurm), end=("code=1",), nodes=tuple(nodes), rank=rank, ranks=ranks, places={"a.err": "n1"}
    )
    assert parse_facts(facts.lines().splitlines()) == facts


def test_the_words_for_ends_are_the_rules() -> None:
    assert end_of("TIMEOUT") == "its walltime was over"
    assert failure_of("lost") == "a rank ended without a record of it"
    assert end_of("COMPLETED") == failure_of("exit") == ""
