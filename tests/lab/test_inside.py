"""Inside running jobs on the real Slurm: commands, shells at a terminal, GPUs, and allocations for a shell."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.lab.talk import converse
from tests.lab.terminal import COMMAND, Terminal
from towline.lab import Lab

IMAGE = "/lustre/images/busybox.sqsh"
PROMPT = r"[#$] (?:\x1b\[6n)?"


@pytest.fixture
def towline(lab: Lab, tmp_path: Path) -> Terminal:
    return Terminal(tmp_path / "state")


@pytest.fixture
def job(towline: Terminal) -> Iterator[str]:
    """A job of two ranks in an image, once both have begun."""
    size = ("--nodes", "2", "--gpus-per-node", "2", "--image", IMAGE, "--name", "inside")
    job = towline.submit(*size, "--env", "GREETING=it's $5", "--shell", "echo begun; sleep 600")
    follower = towline.start("logs", "-f", job)
    assert follower.stdout
    assert [follower.stdout.readline() for _ in range(2)] == ["begun\n"] * 2
    yield job
    towline("cancel", job)
    follower.communicate(timeout=120)


def at_a_terminal(towline: Terminal, *words: str, answers: list[tuple[str, str]]) -> tuple[int, str]:
    sized = ("sh", "-c", 'stty rows 33 cols 91; exec "$@"', "sh", *COMMAND, *words)
    return converse(sized, answers, {**towline.env(), "TERM": "vt100"})


def test_commands_and_shells_run_beside_a_rank(towline: Terminal, job: str) -> None:
    line = 'echo "$RANK of $WORLD_SIZE: $GREETING, ${CUDA_VISIBLE_DEVICES} $(ls -d /.towline)"; echo oops >&2; exit 7'
    done = towline("exec", job, "--", "sh", "-c", line)
    assert (done.code, done.out) == (7, "0 of 2: it's $5, 0,1 /.towline\n")
    assert "oops\n" in done.err
    assert towline("exec", "--rank", "1", job, "sh", "-c", "echo $RANK").out == "1\n"
    piped = subprocess.run(
        [*COMMAND, "exec", "-i", job, "--", "cat"], env=towline.env(), input=b"a\0b", capture_output=True, check=True
    )
    assert piped.stdout == b"a\0b"
    nowhere = towline("exec", "--rank", "2", job, "--", "true")
    assert (nowhere.code, "no rank 2 of job" in nowhere.err) == (66, True)

    code, shown = at_a_terminal(
        towline, "shell", job, answers=[(PROMPT, "echo rank=$RANK; stty size"), (PROMPT, "exit 5")]
    )
    assert code == 5, shown
    assert "rank=0" in shown
    assert "33 91" in shown

    found = towline("gpus", "--json", job).json["gpus"]
    assert sorted({(each["node"], each["index"]) for each in found}) == [
        (each["node"], each["index"]) for each in found
    ]
    assert len(found) == 4
    assert {each["memory_total"] for each in found} == {81559.0}


def test_commands_run_in_every_component_of_a_heterogeneous_job(towline: Terminal, tmp_path: Path) -> None:
    roles = [
        {"name": name, "shell": "echo begun; sleep 600", "partition": partition}
        for name, partition in (("learner", "batch"), ("actor", "cpu"))
    ]
    (tmp_path / "job.json").write_text(json.dumps({"name": "inside-kinds", "roles": roles}))
    job = towline.submit("--file", str(tmp_path / "job.json"))
    with towline.start("logs", "-f", "--grep", "begun", job) as follower:
        assert follower.stdout
        assert sorted(follower.stdout.readline() for _ in range(2)) == ["actor: begun\n", "learner: begun\n"]
        where = "echo $TOWLINE_ROLE $SLURMD_NODENAME"
        told = [towline("exec", "--role", role, job, "--", "sh", "-c", where) for role in ("learner", "actor")]
        nodes = {each.out.split()[0]: each.out.split()[1] for each in told}
        assert nodes["actor"] == "cpu1"
        assert towline("exec", "--node", "cpu1", job, "--", "sh", "-c", where).out == "actor cpu1\n"
        gpus = towline("gpus", "--json", job).json["gpus"]
        assert {each["node"] for each in gpus} == {nodes["learner"]}
        towline("cancel", job)
        follower.communicate(timeout=120)


def test_an_allocation_lasts_as_long_as_its_shell(towline: Terminal) -> None:
    answers = [(PROMPT, "echo gpu=$CUDA_VISIBLE_DEVICES $RANK"), (PROMPT, "exit 4")]
    code, shown = at_a_terminal(towline, "shell", "--gpus", "1", "--time", "10m", answers=answers)
    assert code == 4, shown
    assert "gpu=0 0" in shown
    job = towline("ps", "--all", "--json").json["jobs"][0]["id"]
    assert towline("wait", job).code == 0
    assert towline("exec", job, "--", "true").code == 66


def test_an_allocation_ends_with_its_client(towline: Terminal, tmp_path: Path, lab: Lab) -> None:
    mark = lab.paths.lustre / "alice" / f"mark-{tmp_path.name}"
    ends = f'until [ -e {mark} ]; do sleep 0.3; done; kill -TERM "$(cat {tmp_path}/pid)"'
    line = f'echo $$ >"{tmp_path}/pid"; exec "$@"'
    command = ("sh", "-c", line, "sh", *COMMAND, "shell", "--partition", "cpu", "--time", "10m")
    with subprocess.Popen(["sh", "-c", ends]) as killer:
        try:
            typed = [(PROMPT, f": >/lustre/alice/{mark.name}; sleep 600")]
            code, shown = converse(command, typed, {**towline.env(), "TERM": "vt100"})
        finally:
            killer.kill()
            mark.unlink(missing_ok=True)
    assert code == 143, shown
    assert towline("wait", towline("ps", "--all", "--json").json["jobs"][0]["id"]).code == 0
