"""What a login host says of a job before it is sent."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.slurm.stubs import Slurm
from towline.models.site import NodeKind
from towline.slurm.calls import look_call
from towline.slurm.look import Look, NodesNow, Start, parse_look
from towline.slurm.refusals import RefusalKind


def answer(test: str = "", code: int = 0, free: str = "", now: str = "1000", required: str = "") -> Look:
    shown = "".join(f"!{line}\n" for line in test.splitlines())
    nodes = "".join(f">{line}\n" for line in free.splitlines())
    text = f"@fact required\n{required}@fact place\n>room yes 2048 99 ext2/ext3 /lustre/me\n>now {now}\n"
    return parse_look(f"{text}@query {code} test - -\n{shown}@query 0 free - -\n{nodes}@end\n")


@pytest.mark.parametrize(
    ("said", "start"),
    [
        (
            "sbatch: Job 34 to start at 1060 using 2 processors on nodes node[1-2] in partition batch",
            Start(60, "node[1-2]", "batch"),
        ),
        ("sbatch: Job 389 to start at 1000 using 2 processors on cpu1,node1", Start(0, "cpu1,node1")),  # het
        ("sbatch: Job 7 to start at 900 using 8 processors on nodes n1", Start(0, "n1")),
        (
            "sbatch: info: a notice\nsbatch: Job 7 to start at 1000 using 8 processors on nodes n1 in partition a",
            Start(0, "n1", "a"),
        ),
        ("sbatch: Job 34 to start at 2026-11-30T06:05:58 using 2 processors on nodes n1", None),
        ("", None),
    ],
)
def test_when_slurm_would_start_the_job(said: str, start: Start | None) -> None:
    found = answer(said)
    assert (found.start, found.refusal) == (start, None)


@pytest.mark.parametrize(
    ("said", "kind", "passing"),
    [
        ("allocation failure: Invalid qos specification", RefusalKind.PERMANENT, False),
        ("allocation failure: Requested node configuration is not available", RefusalKind.PERMANENT, False),
        (
            "sbatch: error: allocation failure: Required node not available (down, drained or reserved)",
            RefusalKind.PERMANENT,
            True,
        ),
        (
            "sbatch: error: Batch job submission failed: Unable to contact slurm controller (connect failure)",
            RefusalKind.TEMPORARY,
            False,
        ),
    ],
)
def test_why_slurm_would_not_take_it(said: str, kind: RefusalKind, passing: bool) -> None:
    found = answer(said, code=1)
    assert found.start is None
    assert found.refusal is not None
    assert (found.refusal.kind, found.passing) == (kind, passing)
    assert "allocation failure" not in found.refusal.said


def test_nodes_as_they_are_now() -> None:
    lines = "batch|3|idle|32|1000|gpu:h100:8\nbatch|1|mix*|32|1000|gpu:h100:8(S:0-1)\ncloud|2|idle~|8|10|(null)\nodd\n"
    lines += "batch|1|alloc|32|1000|(null)\nbatch|1|drain|32|1000|(null)\n"
    gpus = (("h100", 8),)
    assert answer(free=lines).nodes == (
        NodesNow("batch", NodeKind(3, 32, 1000, gpus), True, False),
        NodesNow("batch", NodeKind(1, 32, 1000, gpus), False, True),
        NodesNow("cloud", NodeKind(2, 8, 10), True, False),
        NodesNow("batch", NodeKind(1, 32, 1000), False, False),
        NodesNow("batch", NodeKind(1, 32, 1000), False, False),
    )


def test_paths_and_space() -> None:
    found = answer(required=">missing /a b\n>unreadable /c\n>no-image /d\n>no-python /e\n>no-ngc /f\n")
    assert (found.missing, found.unreadable, found.no_images) == (("/a b",), ("/c",), ("/d",))
    assert (found.no_pythons, found.no_ngcs) == (("/e",), ("/f",))
    assert found.room
    assert (found.room.free_kib, found.room.path) == (2048, "/lustre/me")


def test_an_answer_that_broke_off_is_none() -> None:
    with pytest.raises(ValueError, match="broke off"):
        parse_look("@fact required\n")


def test_the_script_is_tested_and_nothing_is_submitted(tmp_path: Path) -> None:
    slurm = Slurm(tmp_path)
    slurm.set(**{"sinfo.text": "batch|3|idle|32|1000|(null)\n", "sbatch_mode": "refuse", "sbatch_says": "no\n"})
    ran = slurm.run(look_call("/nowhere/root", b"#!/bin/sh\n", ()), tmp_path / "call")
    found = parse_look(ran.out)
    assert slurm.calls("sbatch") == ["--test-only ./batch"]
    assert found.refusal
    assert found.refusal.said == "no"
    assert [each.partition for each in found.nodes] == ["batch"]
    assert found.room
    assert found.room.path == "/"
