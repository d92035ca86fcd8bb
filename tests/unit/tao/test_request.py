"""The arguments of `create_job` as a job's description."""

from __future__ import annotations

from typing import Any

import pytest

from towline.models.errors import SpecError
from towline.tao.request import Request, Wish, request_of

RESULTS = "/lustre/a/jobs/m3k9w2x4p/results"


def request(env: dict[str, str] | None = None, **fields: Any) -> Request:
    given: dict[str, Any] = {"image": "nvcr.io/nvidia/pytorch:24.07-py3", "command": "true", **fields}
    return request_of(Wish(**given), RESULTS, env or {})


def test_gpus_are_as_many_as_are_asked_for_and_none_is_none() -> None:
    assert request().spec.resources.gpus == 1
    assert request(gpu_count=8, num_nodes=2).spec.resources.nodes == 2
    nothing = request(gpu_count=0).spec.resources
    assert (nothing.gpus, nothing.gpus_per_node) == (None, 0)


def test_an_account_is_the_users_or_none() -> None:
    assert request().spec.account is None
    assert request(account="research").spec.account == "research"


def test_none_and_what_is_empty_is_what_is_not_given() -> None:
    nothing: dict[str, Any] = dict.fromkeys(
        ("gpu_count", "num_nodes", "partition", "account", "mounts", "inputs", "outputs", "env_vars")
    )
    empty: dict[str, Any] = {"partition": "", "account": "", "mounts": [], "inputs": {}, "outputs": [], "env_vars": {}}
    assert request(**nothing).spec == request(**empty).spec == request().spec
    left_out = request({"HF_TOKEN": "t"}, env_vars={"A": None, "WANDB_API_KEY": None, "HF_TOKEN": None})
    assert (left_out.spec.env, left_out.secrets) == ({}, {"HF_TOKEN": "t"})


def test_mounts_in_the_words_of_taos_sdk() -> None:
    wanted = [("/a", "/b", "rw"), ("/c", "/c", "rw")]
    for given in (
        [{"from_path": "/a", "mount_path": "/b"}, {"src": "/c"}],
        [{"source": "/a", "target": "/b"}, "/c:/c"],
        "/a:/b,/c:/c",
    ):
        assert [(each.source, each.target, each.mode) for each in request(mounts=given).spec.mounts] == wanted


@pytest.mark.parametrize("command", ["awk '{ print $1 }' f", "echo \"$A\" 'b' {c}", "a && b; c | d", "x\n\ny"])
def test_commands_stay_as_they_are(command: str) -> None:
    assert request(command=command).spec.shell == command


@pytest.mark.parametrize(
    "image", ["/lustre/x.sqsh", "nvcr.io#nvidia/a:1", "docker://nvcr.io#nvidia/a:1", "nvcr.io/a:1"]
)
def test_every_spelling_of_images_is_taken(image: str) -> None:
    assert request(image=image).spec.image == image


def test_secrets_are_in_no_description() -> None:
    given = {"WANDB_API_KEY": "sesame-1", "LR": 0.1, "TOKENIZERS_PARALLELISM": False, "AWS_ACCESS_KEY_ID": "own"}
    process = {
        "HF_TOKEN": "sesame-2",
        "ACCESS_KEY": "sesame-3",
        "SECRET_KEY": "sesame-4",
        "NGC_KEY": "sesame-5",
        "S3_BUCKET_NAME": "bucket",
        "CLOUD_REGION": "eu",
        "S3_ENDPOINT_URL": "https://s3",
        "OTHER": "x",
    }
    made = request(process, env_vars=given)
    assert "sesame" not in made.spec.model_dump_json() + repr(made)
    assert made.secrets == {
        "WANDB_API_KEY": "sesame-1",
        "AWS_ACCESS_KEY_ID": "own",
        "AWS_SECRET_ACCESS_KEY": "sesame-4",
        "HF_TOKEN": "sesame-2",
        "NGC_KEY": "sesame-5",
    }
    assert made.spec.env == {
        "LR": "0.1",
        "TOKENIZERS_PARALLELISM": "False",
        "AWS_ENDPOINT_URL": "https://s3",
        "AWS_DEFAULT_REGION": "eu",
        "CLOUD_METADATA": '{"aws":{"bucket":{"cloud_region":"eu","endpoint_url":"https://s3"}}}',
    }


def test_outputs_are_kept_with_the_results() -> None:
    (only,) = request(outputs=["/results/"]).spec.mounts
    assert (only.source, only.target) == (RESULTS, "/results")
    several = request(outputs=["/results", "/work/logs"], mounts=["/data:/data:ro"])
    assert several.folders == ("results", "work-logs")
    assert {(each.source, each.target, each.mode) for each in several.spec.mounts} == {
        ("/data", "/data", "ro"),
        (f"{RESULTS}/results", "/results", "rw"),
        (f"{RESULTS}/work-logs", "/work/logs", "rw"),
    }


@pytest.mark.parametrize(
    "fields",
    [
        {"command": " "},
        {"env_vars": {"A B": "x"}},
        {"env_vars": {"SLURM_JOB_ID": "1"}},
        {"env_vars": {"A;id": "x"}},
        {"partition": "a b"},
        {"partition": "a\n#SBATCH --uid=0"},
        {"partition": "$(id)"},
        {"account": "-x"},
        {"mounts": ["/a:/b:/c:/d"]},
        {"inputs": {"/data": "file:///home/me/set"}},
        {"inputs": {"/data": "data/set"}},
        {"gpu_count": -1},
        {"num_nodes": 0},
        {"outputs": ["/a/b", "/a-b"]},
        {"command": None},
        {"command": ["python", "train.py"]},
        {"command": b"true"},
        {"env_vars": {1: "x"}},
        {"env_vars": "A=b"},
        {"inputs": ["s3://b/set"]},
        {"outputs": [None]},
        {"mounts": [None]},
        {"mounts": [{"target": "/b"}]},
        {"gpu_count": "four"},
    ],
)
def test_what_cannot_be_right_is_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(SpecError):
        request(**fields)
