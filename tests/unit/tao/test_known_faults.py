"""What NVIDIA's SDK gets wrong in a submission, and what is sent here in its place. The rest is on the lab."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from towline.config.tao import PACKAGED_PARTITIONS
from towline.engine.planning.plans import make_plan
from towline.models.plan import Plan
from towline.models.site import NodeKind, Partition, SiteFacts
from towline.tao.request import Wish, request_of
from towline.tao.settings import tao_profile

HERE = "tests/unit/tao/test_known_faults.py"
FAULTS = {
    "a private key that others can read is silently changed": "tests/lab/test_doctor.py",
    "an account of its maker's is the default": f"{HERE}::test_no_account_is_made_up",
    "mounts take the place of the default ones": f"{HERE}::test_mounts_are_added_to_the_default_ones",
    "requeue that is off is not written": f"{HERE}::test_requeue_that_is_off_is_written",
    "a bad number becomes the default": "tests/unit/tao/test_settings.py::test_a_bad_number_is_named",
    "no GPU becomes one": f"{HERE}::test_sizes",
    "every failure is COMPLETED": "tests/lab/test_tao.py::test_a_failure_is_one_whatever_the_container_says",
    "secrets stand in the script": f"{HERE}::test_no_secret_and_no_early_rank_stands_in_the_scripts",
    "names and partitions are not escaped": "tests/unit/tao/test_request.py::test_what_cannot_be_right_is_refused",
    "values are not escaped": f"{HERE}::test_values_are_no_shell",
    "a walltime is followed by a start without a bound": "tests/unit/engine/healing/test_due.py",
    "NODE_RANK is 0 on every node": "tests/lab/test_tao.py::test_a_job_on_two_nodes_with_inputs_outputs_and_hooks",
    "any first component is a registry": f"{HERE}::test_only_what_is_a_registry_is_taken_for_one_and_files_stay_files",
    "CUDA out of memory is tried again": "tests/unit/tao/test_small_parts.py::test_the_programs_own_faults_are_its_own",
    "a lost node is an error of the program": "tests/lab/test_tao_healing.py",
    "roles start once on each node": "tests/lab/test_roles.py::test_three_roles_run_on_their_nodes_each_once",
    "a role that fails is ignored": "tests/lab/test_roles.py::test_a_role_that_fails_is_named_and_ends_the_others",
}
"""What TAO's SDK gets wrong, and the test that would fail if this did, too."""

JOB = "m3k9w2x4p"
BASE = "/lustre/fsw/portfolios/edgeai/users/alice"
KINDS = (NodeKind(8, 128, 1000000, (("h100", 8),), ()),)
NAMES = (*PACKAGED_PARTITIONS, "long")
FACTS = SiteFacts(
    "site",
    "23.02.1",
    tuple(
        Partition(name, name == "polar", True, 86400 * 7, 3600, None, 8, 8, ("h100",), 128, 1000000, KINDS)
        for name in NAMES
    ),
)


def planned(tmp_path: Path, variables: dict[str, str] | None = None, **wish: Any) -> Plan:
    env = {"HOME": str(tmp_path), "SLURM_USER": "alice", "SLURM_HOSTNAME": "login", **(variables or {})}
    profile = tao_profile(env=env)
    given: dict[str, Any] = {"image": "/lustre/x.sqsh", "command": "train", **wish}
    request = request_of(Wish(**given), f"{profile.root}/jobs/{JOB}/results", env)
    return make_plan(request.spec, profile, FACTS, JOB)


def head(plan: Plan) -> list[str]:
    return [line.removeprefix("#SBATCH --") for line in plan.script.splitlines() if line.startswith("#SBATCH")]


def text(plan: Plan, name: str) -> str:
    return bytes(plan.files[name]).decode()  # pyright: ignore[reportArgumentType]


def test_requeue_that_is_off_is_written(tmp_path: Path) -> None:
    assert "requeue" in head(planned(tmp_path))
    assert "no-requeue" in head(planned(tmp_path, {"SLURM_USE_REQUEUE": "false"}))


def test_no_account_is_made_up(tmp_path: Path) -> None:
    assert not [line for line in head(planned(tmp_path)) if line.startswith("account")]
    assert "account=own" in head(planned(tmp_path, {"SLURM_ACCOUNT": "own"}))
    assert "account=other" in head(planned(tmp_path, {"SLURM_ACCOUNT": "own"}, account="other"))


def test_mounts_are_added_to_the_default_ones(tmp_path: Path) -> None:
    step = text(planned(tmp_path, mounts=["/scratch:/scratch"]), "script/step")
    assert "/lustre:/lustre" in step
    assert "/scratch:/scratch" in step
    elsewhere = text(planned(tmp_path, {"SLURM_CONTAINER_MOUNTS": "/data"}), "script/step")
    assert f"{BASE}:{BASE}" in elsewhere, "what TAO's variables name is there in any case"


@pytest.mark.parametrize(
    ("gpus", "nodes", "wanted", "cpus"),
    [
        (0, 1, {"nodes=1"}, "16"),
        (1, 1, {"nodes=1", "gres=gpu:1"}, "16"),
        (4, 1, {"nodes=1", "gres=gpu:4"}, "64"),
        (8, 1, {"nodes=1", "gres=gpu:8", "exclusive"}, "128"),
        (8, 2, {"nodes=2", "gres=gpu:8", "exclusive"}, "16"),
        (20, 1, {"nodes=3", "gres=gpu:8", "exclusive"}, "16"),
    ],
)
def test_sizes(tmp_path: Path, gpus: int, nodes: int, wanted: set[str], cpus: str) -> None:
    lines = head(planned(tmp_path, gpu_count=gpus, num_nodes=nodes))
    assert {line for line in lines if line.startswith(("nodes=", "gres", "exclusive"))} == wanted
    assert f"cpus-per-task={cpus}" in lines


def test_time_is_four_hours_and_no_more_on_the_packaged_partitions(tmp_path: Path) -> None:
    assert "time=04:00:00" in head(planned(tmp_path))
    refused = planned(tmp_path, {"SLURM_TIME_HOURS": "12"}).failures
    assert refused
    assert any("long" in check.fix for check in refused), "with the way out: another partition"
    assert not planned(tmp_path, {"SLURM_TIME_HOURS": "12", "SLURM_PARTITION": "long"}).failures


@pytest.mark.parametrize(
    ("image", "started"),
    [
        ("/lustre/x.sqsh", "/lustre/x.sqsh"),
        ("nvcr.io#nvidia/pytorch:24.07-py3", "nvcr.io#nvidia/pytorch:24.07-py3"),
        ("docker://nvcr.io#nvidia/pytorch:24.07-py3", "nvcr.io#nvidia/pytorch:24.07-py3"),
        ("nvcr.io/nvidia/pytorch:24.07-py3", "nvcr.io#nvidia/pytorch:24.07-py3"),
        ("nvidia/cuda:12.8", "nvidia/cuda:12.8"),
    ],
)
def test_only_what_is_a_registry_is_taken_for_one_and_files_stay_files(
    tmp_path: Path, image: str, started: str
) -> None:
    assert f"--container-image={started}'" in text(planned(tmp_path, image=image), "script/step")


def test_no_secret_and_no_early_rank_stands_in_the_scripts(tmp_path: Path) -> None:
    variables = {"HF_TOKEN": "sesame-1", "NGC_KEY": "sesame-2"}
    plan = planned(tmp_path, variables, env_vars={"WANDB_API_KEY": "sesame-3"}, num_nodes=2)
    assert not [name for name in plan.files if b"sesame" in bytes(plan.files[name])]  # pyright: ignore[reportArgumentType]
    assert 'NODE_RANK="${SLURM_NODEID:-0}"' in text(plan, "script/env"), "each task reads that file"
    assert "NODE_RANK" not in plan.script
    assert "$? == 124" not in plan.script


def test_values_are_no_shell(tmp_path: Path) -> None:
    value = 'it\'s $(id) "x" `y` \\ {z}\nnext'
    (tmp_path / "env").write_text(text(planned(tmp_path, env_vars={"LR": value}), "script/env"))
    read = subprocess.run(
        ["sh", "-c", '. "$1"; printf %s "$LR"', "sh", str(tmp_path / "env")], capture_output=True, text=True, check=True
    )
    assert read.stdout == value


@pytest.mark.parametrize("fault", FAULTS)
def test_every_known_fault_has_its_test(fault: str) -> None:
    file, _, name = FAULTS[fault].partition("::")
    found = (Path(__file__).parents[3] / file).read_text(encoding="utf-8")
    assert re.search(rf"^def {name or 'test_'}", found, re.MULTILINE)
