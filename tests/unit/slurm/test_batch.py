"""The batch script: one golden file per shape, and sbatch's own way of reading directives."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from towline.slurm.batch import (
    BatchJob,
    Directive,
    component_directives,
    directives,
    one_line,
    quote_directive,
    render_batch,
)

GOLDEN = Path(__file__).parent / "golden"
DIRECTORY = "/lustre/alice/towline/jobs/k3q9p0abc"


def job(name: str = "train", **values: object) -> BatchJob:
    base: dict[str, object] = {"directory": DIRECTORY, "job_id": "k3q9p0abc", "token": f"{name}-k3q9p0abc-a1"}
    return BatchJob(**{**base, **values})  # pyright: ignore[reportArgumentType]


SHAPES: dict[str, BatchJob] = {
    "cpu": job("hello", command_line="echo hello", requeue=False),
    "one-gpu": job(command_line="python train.py --epochs 3", gpus_per_node=1, cpus_per_task=8, time=5400),
    "four-nodes": job(
        command_line="torchrun train.py",
        nodes=4,
        tasks_per_node=8,
        gpus_per_node=8,
        cpus_per_task=4,
        memory=65536,
        time=2 * 86400 + 3600,
    ),
    "all-options": job(
        command_line="sh -c 'first\n#SBATCH --account=evil\nsecond'",
        nodes=2,
        gpus_per_node=8,
        exclusive=True,
        memory=1024,
        time=60,
        account="research",
        partition=("batch", "low"),
        qos="high",
        reservation="friday",
        constraint="[rack1|rack2]&nvme",
        nodelist="node[1-2]",
        exclude="node3,node4",
        licenses=("matlab:2", "fluent@db:1"),
        begin="2026-03-01T08:00",
        deadline="now+7days",
        signal=("USR1", 300),
        mail_user="alice@example.org",
        mail_types=("END", "FAIL"),
        options={"switches": "2@1:00:00", "gres": "nvme:1", "hold": "", "nice": "-5"},
        comment='{"OccupiedIdleGPUsJobReaper":{"exemptIdleTimeMins":"60"}} # it\'s \\o/',
        attempt=2,
    ),
    "typed-gres": job(gpus_per_node=4, gpu_type="h100"),
    "gpus-per-node": job(gpus_per_node=4, gpu_type="h100", gpu_request="gpus-per-node"),
    "gpu-feature": job(gpus_per_node=4, gpu_type="h100", gpu_request="constraint", constraint="rack1|rack2"),
    "all-memory": job(memory="all", exclusive=True),
    "memory-per-cpu": job(memory_per_cpu=2048, cpus_per_task=4),
    "two-components": job(
        command_line="learner: python learn.py; actor: python act.py",
        gpus_per_node=8,
        time=3600,
        account="research",
        others=(job(nodes=2, tasks_per_node=4, cpus_per_task=2, partition=("cpu",), time=3600, account="research"),),
    ),
    "odd-root": job(directory="/data/100% ours/it's hetjob/jobs/k3q9p0abc"),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_the_script_is_the_golden_one(shape: str) -> None:
    assert render_batch(SHAPES[shape]) == (GOLDEN / f"{shape}.sh").read_text()


@pytest.mark.parametrize("shape", SHAPES)
def test_the_script_is_sound_sh(shape: str) -> None:
    checked = subprocess.run(["shellcheck", str(GOLDEN / f"{shape}.sh")], capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout


@pytest.mark.parametrize("shape", SHAPES)
def test_sbatch_reads_exactly_the_options_that_are_meant(shape: str) -> None:
    wanted = SHAPES[shape]
    meant = [written(option) for option in directives(wanted)]
    for other in wanted.others:
        meant += ["hetjob", *(written(option) for option in component_directives(other))]
    assert read_directives(render_batch(wanted)) == meant


def written(option: Directive) -> str:
    name, value = option
    return f"--{name}" if value is None else f"--{name}={value}"


@pytest.mark.parametrize("shape", SHAPES)
def test_the_body_hands_over_to_the_supervisor(shape: str, tmp_path: Path) -> None:
    shown = tmp_path / "jobs" / "it's $HOME"
    (shown / "script").mkdir(parents=True)
    (shown / "script" / "supervisor").write_text('echo "$TOWLINE_JOB_ID|$TOWLINE_ATTEMPT|$TOWLINE_JOB_DIR"; exit 7\n')
    wanted = SHAPES[shape]
    script = render_batch(job(directory=str(shown), attempt=wanted.attempt))
    ran = subprocess.run(["/bin/sh"], input=script, capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stdout) == (7, f"k3q9p0abc|{wanted.attempt}|{shown}\n")


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("account", "a b"),
        ("account", "a\n#SBATCH --uid=0"),
        ("qos", 'a"b'),
        ("qos", "a'b"),
        ("partition", ("a", "b\\")),
        ("partition", ("--x",)),
        ("reservation", "a#b"),
        ("constraint", "a;b"),
        ("nodelist", "/etc/passwd"),
        ("exclude", "./nodes"),
        ("token", "a b"),
        ("comment", "a\nb"),
        ("comment", "a\x00b"),
        ("comment", "\udcff"),
        ("directory", "relative/jobs"),
        ("directory", "/a\\b"),
        ("directory", "/a\nb"),
        ("gpu_type", "h100:8"),
        ("begin", "now +1hour"),
        ("options", {"switches": "1\n#SBATCH --wrap=x"}),
        ("licenses", ("a b",)),
    ],
)
def test_a_value_that_cannot_stand_in_a_directive_is_refused(field: str, value: object) -> None:
    with pytest.raises(ValueError):
        render_batch(replace(job(gpus_per_node=1), **{field: value}))


def test_the_error_names_the_option() -> None:
    with pytest.raises(ValueError, match=r"^--qos: "):
        render_batch(job(qos="a b"))


@given(st.text(st.characters(exclude_categories=("Cc", "Cs"))))
def test_any_comment_comes_through(comment: str) -> None:
    assert [value for name, value in directives(job(comment=comment)) if name == "comment"] == [comment] * bool(comment)
    if comment:
        assert read_argument(f"--comment={quote_directive(comment)} --next") == (f"--comment={comment}", " --next")


@given(st.text())
def test_the_head_comment_is_one_printable_line(text: str) -> None:
    line = one_line(text)
    assert line.isprintable()
    assert len(line) <= 110


def read_directives(script: str) -> list[str]:
    """The arguments that sbatch takes from a script, by the rules of `_opt_batch_script` in its opt.c."""
    found: list[str] = []
    for line in script.split("\n"):
        if line.startswith("#SBATCH"):
            if line == "#SBATCH hetjob":
                found.append("hetjob")
                continue
            rest = line.removeprefix("#SBATCH")
            # 20.11 blanks these words out wherever they stand
            assert "hetjob" not in rest
            while rest.strip():
                argument, rest = read_argument(rest)
                found.append(argument)
        elif line.strip() and not line.strip().startswith("#"):
            break
    return found


def read_argument(line: str) -> tuple[str, str]:
    """The first argument of a line and the rest, by the rules of `get_argument` in sbatch's opt.c."""
    line = line.lstrip(" \t")
    argument, quote, escaped = "", "", False
    for index, char in enumerate(line):
        if escaped:
            escaped = False
        elif char == "\\":
            escaped = True
            continue
        elif quote:
            if char == quote:
                quote = ""
                continue
        elif char in "\"'":
            quote = char
            continue
        elif char == "#":
            return argument, ""
        elif char in " \t":
            return argument, line[index:]
        argument += char
    assert not quote
    return argument, ""
