"""What NVIDIA's SDK gets wrong in a submission, and what is sent here in its place. The rest is on the lab."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from towline.config.tao import PACKAGED_PARTITIONS
from towline.engine.planning.plans import make_plan
from towline.models.plan import Plan
from towline.models.site import NodeKind, Partition, SiteFacts
from towline.tao.request import Wish, request_of
from towline.tao.settings import tao_profile

HERE = "tests/unit/tao/test_known_faults.py"
HEALING = "tests/unit/launch/test_healing.py"
LAB = "tests/lab/test_tao.py"


class Fault(NamedTuple):
    """What NVIDIA's SDK gets wrong.

    Attributes:
        what: in a word.
        old: what nvidia-tao-sdk 7.2.0 does.
        test: the test that fails when this did so, too.
    """

    what: str
    old: str
    test: str


FAULTS = (
    Fault(
        "a private key that others can read is silently changed",
        "the constructor does os.chmod(SSH_KEY_PATH, 0o600) and goes on",
        "tests/lab/test_tao_refusals.py::test_a_key_that_others_can_read_is_refused_and_stays_as_it_is",
    ),
    Fault(
        "an account of its maker's is the default",
        "--account=edgeai_tao-ptm_image-foundation-model-clip where accounting names none",
        f"{HERE}::test_no_account_is_made_up",
    ),
    Fault(
        "mounts take the place of the default ones",
        "mounts=[{...}] makes --container-mounts have these alone; texts in the list are dropped",
        f"{HERE}::test_mounts_are_added_to_the_default_ones",
    ),
    Fault(
        "requeue that is off is not written",
        "SLURM_USE_REQUEUE=false writes no directive, so the site's JobRequeue counts",
        f"{HERE}::test_requeue_that_is_off_is_written",
    ),
    Fault(
        "a bad number becomes the default",
        "SLURM_TIME_HOURS=four means 4.0, SLURM_CPUS_PER_TASK=many 16",
        "tests/unit/tao/test_settings.py::test_a_bad_number_is_named",
    ),
    Fault("no GPU becomes one", "gpu_count=0 writes --gres=gpu:1", f"{HERE}::test_sizes"),
    Fault(
        "every failure is COMPLETED",
        "`if [[ $? == 124 ]]` at the end of the script: Slurm has COMPLETED 0:0, and an afterok child runs",
        f"{LAB}::test_a_failure_is_one_whatever_the_container_says",
    ),
    Fault(
        "secrets stand in the script",
        "export HF_TOKEN='...' in the .sbatch file, and again in env/<job>.json",
        f"{HERE}::test_no_secret_and_no_early_rank_stands_in_the_scripts",
    ),
    Fault(
        "names and partitions are not escaped",
        "env_vars={'A;id': 'x'} and partition='a\\n#SBATCH --uid=0' go into the script as they are",
        "tests/unit/tao/test_request.py::test_what_cannot_be_right_is_refused",
    ),
    Fault(
        "images and mounts are not escaped",
        "srun --container-image=<image> --container-mounts=<mounts> without quotes: a space or a `;` is shell",
        f"{HERE}::test_images_and_mounts_are_one_word_each",
    ),
    Fault(
        "a walltime is followed by a start without a bound",
        "`timeout` ends srun with 124 and the script does scontrol requeue, each time and whether it can resume",
        f"{HEALING}::test_after_walltime_only_a_job_that_can_resume_goes_on",
    ),
    Fault(
        "starts after walltimes have no bound",
        "the same without a count: a job that never moves is requeued for ever",
        f"{HEALING}::test_a_command_that_asks_to_be_started_again_goes_on_while_it_moves",
    ),
    Fault(
        "NODE_RANK is 0 on every node",
        "export NODE_RANK=$SLURM_NODEID in the batch script (7.2.0 does it again in the task, but not for cosmos-rl)",
        f"{LAB}::test_a_job_on_two_nodes_with_inputs_outputs_and_hooks",
    ),
    Fault(
        "any first component is a registry",
        "nvidia/cuda:12.8 is imported as docker://nvidia#cuda:12.8",
        f"{HERE}::test_only_what_is_a_registry_is_taken_for_one_and_files_stay_files",
    ),
    Fault(
        "a ready .sqsh file is converted again",
        "enroot import docker://#lustre/x.sqsh on the conversion partition, before it is used as it is after all",
        f"{HERE}::test_only_what_is_a_registry_is_taken_for_one_and_files_stay_files",
    ),
    Fault(
        "the logs' directory is not made",
        "--output=<base>/slurm-logs/%x-%j/main.out: Slurm 22.05 ends the job with 0:53 and no log",
        f"{LAB}::test_a_job_on_two_nodes_with_inputs_outputs_and_hooks",
    ),
    Fault(
        "CUDA out of memory is tried again",
        "RuntimeError.*CUDA, NCCL.*error, ECC.*error ... in the last 500 lines: a FAILED job starts 10 times",
        f"{HEALING}::test_a_word_about_gpus_in_the_log_is_no_reason_to_start_again",
    ),
    Fault(
        "a lost node leaves no analysis",
        "get_failure_analysis searches the log for the same words, and a lost node writes none: None",
        "tests/lab/test_tao_healing.py::test_a_node_that_is_lost_and_a_process_that_watches_on",
    ),
    Fault(
        "roles start once on each node",
        "one srun on all nodes runs controller, policy and rollout; --ntasks=<nodes> is inherited by each inner one",
        "tests/lab/test_roles.py::test_three_roles_run_on_their_nodes_each_once",
    ),
    Fault(
        "a role that fails is ignored",
        "the job waits for the controller, or is cancelled, and the role's exit code is lost",
        "tests/lab/test_roles.py::test_a_role_that_fails_is_named_and_ends_the_others",
    ),
)
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


def test_images_and_mounts_are_one_word_each(tmp_path: Path) -> None:
    mounts, image = "/lustre/a b;id $(id):/c", "/lustre/my 'own' \"image\".sqsh"
    step = text(planned(tmp_path, mounts=[mounts], image=image), "script/step")
    words = f'srun() {{ :; }}\n{step}\nfor word in "$@"; do printf \'%s\\n\' "$word"; done'
    read = subprocess.run(["sh", "-c", words], capture_output=True, text=True, check=True).stdout.splitlines()
    assert f"--container-image={image}" in read
    assert any(mounts in word.split(",") for word in read), read


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.what)
def test_every_known_fault_has_its_test(fault: Fault) -> None:
    file, _, name = fault.test.partition("::")
    found = (Path(__file__).parents[3] / file).read_text(encoding="utf-8")
    assert re.search(rf"^def {name}\(", found, re.MULTILINE), f"{file} has no {name}"
