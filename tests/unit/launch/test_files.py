"""The files that a job carries: one golden file per shape, and values that come through a real shell unchanged."""

from __future__ import annotations

import json
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.launch.allocation import SHELLS
from towline.container.apptainer import exec_words
from towline.launch.files import LaunchPlan, entrypoint, environment_file, job_files, own_mounts, step_command
from towline.launch.quoting import quote
from towline.launch.rendezvous import master_port
from towline.launch.roles import role_files
from towline.models.image import Image
from towline.models.spec import JobSpec, Mount

DIRECTORY = "/lustre/alice/towline/jobs/m3k9w2x4p"
GOLDEN = Path(__file__).parent / "golden"
IN_IMAGE = (
    "--container-image=/lustre/images/python.sqsh",
    f"--container-mounts={DIRECTORY}:{DIRECTORY},{DIRECTORY}/script:/.towline",
    "--no-container-mount-home",
)


def plan(container: tuple[str, ...] = IN_IMAGE, **fields: object) -> LaunchPlan:
    return LaunchPlan(JobSpec.build(**fields), "m3k9w2x4p", DIRECTORY, container)


def with_gpus(nodes: int, gpus: int, tasks: int = 1) -> dict[str, int]:
    return {"nodes": nodes, "gpus_per_node": gpus, "tasks_per_node": tasks}


ONE_NODE = plan(command=("python3", "train.py", "--name", "it's $5"), env={"LR": "3e-4", "GREETING": 'a "b"\n$c'})
FOUR_NODES = plan(
    shell="cd /data &&\ntorchrun --nnodes=$NNODES --nproc-per-node=$NPROC_PER_NODE train.py\n",
    name="train",
    hang_after="30m",
    resources={"nodes": 4, "gpus_per_node": 8, "cpus_per_task": 16},
)
MANY_TASKS = plan(
    (), command=("./solve",), resources={"nodes": 2, "tasks_per_node": 4}, workdir="/lustre/a b", log_per="rank"
)
TASK_PER_GPU = plan(command=("python3", "ddp.py"), launch="gpu", resources=with_gpus(2, 8, 8))
MPI_RANKS = replace(plan(command=("./solve",), launch="mpi", resources={"nodes": 2, "tasks_per_node": 4}), mpi="pmix")
TAO_ONE_NODE = replace(
    plan(shell="python3 train.py | tee log", resources=with_gpus(1, 8), env={"DATA": "slurm://lustre/a"}),
    convention="tao",
    whole_environment=True,
    tao_root="/lustre/alice/towline",
)
TAO_NODES = replace(TAO_ONE_NODE, spec=plan(command=("python3", "train.py"), resources=with_gpus(2, 8)).spec)
ROLES = LaunchPlan(
    JobSpec.build(
        roles=[
            {"name": "controller", "on": "policy", "shell": "serve", "ready_port": 8082, "service": True},
            {"name": "policy", "nodes": 2, "command": ("python3", "policy.py"), "env": {"LR": "3e-4"}},
        ],
        env={"SEED": "7"},
        resources={"nodes": 2, "gpus_per_node": 8, "cpus_per_task": 16},
    ),
    "m3k9w2x4p",
    DIRECTORY,
    containers={"controller": IN_IMAGE, "policy": IN_IMAGE},
    convention="tao",
)
APPTAINER = plan(
    exec_words(
        "apptainer",
        Image.parse("nvcr.io/nvidia/pytorch:24.07-py3"),
        (Mount(source="/lustre/my data", target="/data", mode="ro"), *own_mounts(DIRECTORY)),
        workdir="/work",
        gpus=True,
    ),
    command=("python3", "train.py"),
    resources=with_gpus(2, 8),
)
SHAPES = {
    "roles": ROLES,
    "one-node": ONE_NODE,
    "four-nodes": FOUR_NODES,
    "on-the-node": MANY_TASKS,
    "task-per-gpu": TASK_PER_GPU,
    "mpi": MPI_RANKS,
    "tao-one-node": TAO_ONE_NODE,
    "tao-nodes": TAO_NODES,
    "apptainer": APPTAINER,
}

STATIC = {
    f"script/{name}"
    for name in (
        "supervisor",
        "prelude",
        "roles.sh",
        "judge.sh",
        "heal.sh",
        "past.sh",
        "fetch.sh",
        "check",
        "submit",
        "rules",
        "search.sh",
        "nodes.sh",
        "hang.sh",
        "use",
        "stacks",
        "layout",
    )
}


def golden() -> dict[str, str]:
    """File name → content for every shape."""
    return {
        f"{shape}.{name.removeprefix('script/').replace('/', '.')}.sh": content.decode()
        for shape, launch in SHAPES.items()
        for name, content in (role_files(launch) if launch.spec.roles else job_files(launch)).items()
        if name not in STATIC and not name.endswith(".json")
    }


def test_the_layout_of_the_preset_names_files_that_are_there() -> None:
    files = {**job_files(TAO_ONE_NODE), "script/batch": b""}
    lines = [line.split(" ") for line in files["script/layout"].decode().splitlines()]
    assert {kind for kind, *_ in lines} == {"link"}
    linked = {path: target.removeprefix("../jobs/m3k9w2x4p/") for _, path, target in lines}
    assert linked["specs/m3k9w2x4p.json"] == "script/specs.json"
    assert set(linked.values()) <= files.keys()
    assert json.loads(files["script/env.json"])["DATA"] == "/lustre/a"


def test_golden() -> None:
    assert golden() == {path.name: path.read_text() for path in GOLDEN.iterdir()}


def test_shellcheck_has_nothing_against_any_shape() -> None:
    ours = [path for path in sorted(GOLDEN.iterdir()) if path.name != "four-nodes.entrypoint.sh"]  # a user's own text
    checked = subprocess.run(
        [
            "shellcheck",
            "--shell=sh",
            "--exclude=SC2034,SC2016,SC2154",
            *ours,
        ],  # others read what they set; nothing is to expand
        capture_output=True,
        text=True,
        check=False,
    )
    assert checked.stdout == ""


def test_the_step_asks_for_no_gpus() -> None:
    assert not [word for word in step_command(FOUR_NODES) if "gpu" in word or "gres" in word]


def test_own_mounts() -> None:
    assert [(mount.source, mount.target) for mount in own_mounts(DIRECTORY)] == [
        (DIRECTORY, DIRECTORY),
        (f"{DIRECTORY}/script", "/.towline"),
    ]


@pytest.mark.parametrize("slurm_id", [1, 9999, 10000, 67108863, 2147483647])
def test_ports_stay_clear_of_ephemeral_ones(slurm_id: int) -> None:
    assert 20000 <= master_port(slurm_id) < 30000


def test_the_port_is_the_one_that_the_supervisor_works_out() -> None:
    assert master_port(12345678) == 25678  # as test_ranks finds it in a task


def sh(shell: tuple[str, ...], script: str) -> bytes:
    return subprocess.run([*shell, "-c", script], capture_output=True, check=True, env={"PATH": "/usr/bin:/bin"}).stdout


values = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]))
nasty = st.text(st.sampled_from("'\"\\$`!\n\r\t *?[]{}~#&|;<>()=%éß中🙂\x01\x7f\x81\x88"), max_size=12)


@pytest.mark.parametrize("shell", SHELLS, ids=lambda shell: shell[0])
@given(value=values | nasty)
@settings(max_examples=40, deadline=None)
def test_any_value_comes_through_the_environment(shell: tuple[str, ...], value: str) -> None:
    script = environment_file(plan(command=("true",), env={"NAME": value})) + "exec printenv NAME"
    assert sh(shell, script) == value.encode() + b"\n"


@pytest.mark.parametrize("shell", SHELLS, ids=lambda shell: shell[0])
@given(words=st.lists(values | nasty, max_size=4))
@settings(max_examples=40, deadline=None)
def test_any_arguments_come_through_the_entrypoint(shell: tuple[str, ...], words: list[str]) -> None:
    spec = JobSpec.build(command=("printf", "%s\\0", "first", *words))
    assert sh(shell, entrypoint(spec)) == b"".join(word.encode() + b"\0" for word in ["first", *words])


def test_a_value_that_no_shell_can_carry() -> None:
    with pytest.raises(ValueError, match="NUL"):
        quote("a\0b")


def test_a_role_of_another_kind_is_started_in_its_component() -> None:
    roles = [
        {"name": "actor", "shell": "act", "partition": "cpu"},
        {"name": "learner", "shell": "learn", "resources": {"gpus_per_node": 4, "cpus_per_task": 8}},
    ]
    files = role_files(LaunchPlan(JobSpec.build(roles=roles), "m3k9w2x4p", DIRECTORY))
    step = files["script/roles/learner/step"].decode()
    assert "tl_role_component=1\n" in step
    assert "'--het-group=1'" in step
    assert "'--cpus-per-task=8'" in step
    assert "tl_role_first=2\n" in step
    assert "NUM_GPU_PER_NODE='4'" in files["script/roles/learner/env"].decode()
    assert "tl_role_component=0\n" in files["script/roles/actor/step"].decode()


def test_a_container_has_a_name_that_is_the_jobs_own() -> None:
    step = job_files(plan(("--container-image=/x.sqsh", "--container-name=work"), command=("true",)))["script/step"]
    assert "'--container-name=work'-\"$SLURM_JOB_ID\" \\\n" in step.decode()
