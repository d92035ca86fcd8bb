"""Words, failures, checkpoints, versions, specifications and GPUs."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import Any

import pytest

from towline.models.diagnosis import Diagnosis
from towline.models.errors import SpecError, UsageError
from towline.models.job import Attempt, JobRecord, JobState
from towline.slurm.states import job_state
from towline.tao import artifacts, checkpoints, preflight, versions
from towline.tao.failure import failure_of
from towline.tao.spec_serialization import normalize_specs
from towline.tao.words import TERMINAL, word_of


def record(state: JobState, *slurm: str) -> JobRecord:
    attempts = tuple(Attempt(number, str(40 + number), slurm_state=word) for number, word in enumerate(slurm, 1))
    return JobRecord("m3k9w2x4p", "tao-job", "tao", state, "/d", 0.0, attempts)


# --- Words ---


@pytest.mark.parametrize(
    ("state", "slurm", "before", "word"),
    [
        (JobState.SUBMITTING, "", "", "Pending"),
        (JobState.PENDING, "CONFIGURING", "", "Pending"),
        (JobState.PENDING, "REQUEUED", "Running", "Pending"),
        (JobState.RUNNING, "COMPLETING", "", "Running"),
        (JobState.SUSPENDED, "SUSPENDED", "", "Paused"),
        (JobState.RUNNING, "STOPPED", "", "Paused"),
        (JobState.SUCCEEDED, "COMPLETED", "", "Complete"),
        (JobState.FAILED, "FAILED", "", "Error"),
        (JobState.FAILED, "TIMEOUT", "", "Error"),
        (JobState.FAILED, "DEADLINE", "", "Error"),
        (JobState.FAILED, "OUT_OF_MEMORY", "", "Error"),
        (JobState.FAILED, "PREEMPTED", "", "Canceled"),
        (JobState.FAILED, "REVOKED", "", "Canceled"),
        (JobState.REFUSED, "", "", "Error"),
        (JobState.CANCELLED, "CANCELLED", "Canceling", "Canceled"),
        (JobState.RUNNING, "RUNNING", "Canceling", "Canceling"),
        (JobState.UNKNOWN, "NEW_WORD", "Running", "Running"),
    ],
)
def test_words_after_a_moment_are_those_of_the_contract(state: JobState, slurm: str, before: str, word: str) -> None:
    assert word_of(record(state, slurm), before) == word
    assert "Unknown" not in TERMINAL


CONTRACT = {
    "Pending": "PENDING CONFIGURING RESIZING REQUEUED REQUEUE_FED REQUEUE_HOLD SPECIAL_EXIT STAGE_OUT RESV_DEL_HOLD",
    "Running": "RUNNING COMPLETING SIGNALING",
    "Complete": "COMPLETED",
    "Error": "FAILED BOOT_FAIL DEADLINE OUT_OF_MEMORY NODE_FAIL LAUNCH_FAILED RECONFIG_FAIL TIMEOUT",
    "Canceled": "CANCELLED PREEMPTED REVOKED",
    "Paused": "SUSPENDED STOPPED",
}
"""TAO's table of Slurm's states, for a job that is not started again."""


@pytest.mark.parametrize(("word", "slurm"), [(word, each) for word, text in CONTRACT.items() for each in text.split()])
def test_the_contracts_table_of_states(word: str, slurm: str) -> None:
    assert word_of(record(job_state(slurm), slurm)) == word


# --- Failures ---


def test_nothing_failed() -> None:
    assert failure_of(record(JobState.SUCCEEDED, "COMPLETED"), None) is None
    assert failure_of(record(JobState.RUNNING, "RUNNING"), None) is None
    assert failure_of(record(JobState.CANCELLED, "CANCELLED"), None) is None


def test_a_node_that_failed_is_the_clusters_fault_and_every_attempt_is_told() -> None:
    node = Diagnosis(
        "node", "xid-79", "A GPU has fallen off the bus.", "It starts again elsewhere.", "Xid 79", retry="yes"
    )
    found = failure_of(record(JobState.FAILED, "NODE_FAIL", "FAILED"), node)
    assert found is not None
    assert (found["err_class"], found["retriable"], found["match"]) == ("ERR_INFRA", True, "Xid 79")
    assert [each["node_event_name"] for each in found["job_failure_by_node_event"]] == ["NODE_FAIL", "FAILED"]
    plain = failure_of(record(JobState.FAILED, "NODE_FAIL"), None)
    assert plain is not None
    assert plain["err_class"] == "ERR_INFRA"
    gone_on = failure_of(record(JobState.SUCCEEDED, "REQUEUED", "COMPLETED"), None)
    assert gone_on is not None, "of an attempt that Slurm has put back, too"
    assert (gone_on["err_class"], gone_on["retriable"]) == ("ERR_INFRA", True)


def test_the_programs_own_faults_are_its_own() -> None:
    user = Diagnosis("user", "cuda-oom", "CUDA ran out of memory.", "Use smaller batches.", "CUDA out of memory")
    found = failure_of(record(JobState.FAILED, "FAILED"), user)
    assert found is not None
    assert (found["err_class"], found["retriable"], found["suggestion"]) == (
        "ERR_PROGRAM",
        False,
        "Use smaller batches.",
    )


# --- Checkpoints ---


def test_checkpoints_are_files_and_directories_by_epoch_and_step() -> None:
    paths = [
        *("train/epoch_10/a.distcp", "train/epoch_10/b.distcp", "model_epoch_9.pth", "step_300/model.safetensors"),
        *("notes.txt", "inputs/ptm.pth", "checkpoint-20/weights.pt", "best.onnx"),
    ]
    found = checkpoints.checkpoints_among(paths)
    assert set(found) == {"best.onnx", "checkpoint-20", "step_300", "model_epoch_9.pth", "train/epoch_10"}
    assert found.index("checkpoint-20") < found.index("step_300")
    assert found.index("model_epoch_9.pth") < found.index("train/epoch_10")


def test_the_one_that_is_meant_is_selected(tmp_path: Path) -> None:
    for name in ("model_epoch_4.pth", "model_epoch_10.pth", "model_latest.pth", "model_best_3.pth"):
        (tmp_path / name).write_text("x")
    (tmp_path / "epoch_9").mkdir()
    (tmp_path / "epoch_9" / "part").write_text("x")

    def chosen(**wanted: Any) -> str | None:
        found = checkpoints.get_checkpoint_path(experiment_dir=tmp_path, **wanted)
        return found and Path(found).name

    assert chosen() == "model_epoch_10.pth", "by number, not by name"
    assert chosen(epoch=5) == "model_epoch_4.pth", "some count from 0"
    assert chosen(epoch=9, prefer_directory=True) == "epoch_9"
    assert chosen(epoch=77) is None
    assert chosen(epoch=77, allow_latest=True) == "model_latest.pth"
    assert chosen(action="evaluate") == "model_best_3.pth"


# --- Versions ---


def test_keys_and_references(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TAO_VERSIONS_FILE", raising=False)
    monkeypatch.chdir(tmp_path)
    reference = "nvcr.io/nvidia/tao/tao-toolkit:6.26.3-pyt"
    for value in (reference, "ubuntu", "/lustre/x.sqsh", "ubuntu:22.04"):
        assert versions.resolve_container_image(value) == value
    assert versions.resolve_container_image("tao_toolkit.pyt") == reference
    (tmp_path / "versions.yaml").write_text(
        "images: {tao_toolkit: {pyt: own}}\nwheels: {tao_sdk_slurm: 'towline==9'}\n"
    )
    assert versions.resolve_image("tao_toolkit.pyt") == "own"
    assert versions.resolve_wheel("wheels.tao_sdk_slurm") == "towline==9"
    for wrong in ("tao_toolkit.none", "none.pyt"):
        with pytest.raises(KeyError):
            versions.resolve_image(wrong)
    with pytest.raises(versions.KeyNotFoundError, match="several"):
        versions.resolve_image("tao_toolkit")
    monkeypatch.setenv("TAO_VERSIONS_FILE", str(tmp_path / "none.yaml"))
    with pytest.raises(FileNotFoundError):
        versions.load_manifest()


# --- Specifications ---


class Kind(Enum):
    FAST = "fast"


def test_specifications_become_plain() -> None:
    given: dict[str, Any] = {"a": Path("/x"), "b": (1, 2.5, True), "c": {"d": Kind.FAST, "e": None}, "f": []}
    assert normalize_specs(given) == {"a": "/x", "b": [1, 2.5, True], "c": {"d": "fast", "e": None}, "f": []}
    assert normalize_specs(None) == {}
    shared = [1]
    assert normalize_specs({"a": shared, "b": shared}) == {"a": [1], "b": [1]}


@pytest.mark.parametrize(
    ("value", "where"),
    [
        ({"a": {"b": [1, float("nan")]}}, r"specs\['a'\]\['b'\]\[1\]"),
        ({"a": object()}, r"specs\['a'\]"),
        ({"a": {1: 2}}, r"specs\['a'\]"),
        ({"a": {1, 2}}, r"specs\['a'\]"),
    ],
)
def test_what_cannot_be_written_is_named(value: dict[str, Any], where: str) -> None:
    with pytest.raises((TypeError, ValueError), match=where):
        normalize_specs(value)


def test_a_specification_that_holds_itself_or_nothing_is_named() -> None:
    loop: dict[str, Any] = {}
    loop["a"] = [loop]
    with pytest.raises(ValueError, match="itself"):
        normalize_specs(loop)
    with pytest.raises(TypeError, match="TOML"):
        normalize_specs({"a": None}, allow_none=False)


# --- GPUs and files ---


def test_images_fit_gpus_or_not() -> None:
    there = preflight.parse_compute_capabilities("compute_cap\n9.0\n9.0\n10.0\n")
    assert there == ["sm_90", "sm_100"]
    assert preflight.check_gpu_architecture_compatibility(there, "8.0, 9.0;10.0").ok
    bad = preflight.check_gpu_architecture_compatibility(there, ["sm_80", "sm_90a"], image="img")
    assert (bad.ok, bad.message) == (False, "img is not built for sm_100; it is for sm_80, sm_90")
    assert preflight.check_gpu_architecture_compatibility([], None).ok, "what cannot be told stops nobody"


def test_only_a_jobs_own_directory_is_its_own() -> None:
    results = "lustre:///lustre/a/results/m3k9w2x4p"
    assert artifacts.job_scoped_remote_path(results, "m3k9w2x4p") == "/lustre/a/results/m3k9w2x4p"
    for wrong in ("lustre:///lustre/a/results", "s3://b/m3k9w2x4p", "lustre:///a/../m3k9w2x4p/x"):
        with pytest.raises(SpecError):
            artifacts.job_scoped_remote_path(wrong, "m3k9w2x4p")
    with pytest.raises(SpecError):
        artifacts.validate_job_id("../x")
    with pytest.raises(UsageError):
        artifacts.require_terminal_job({"status": "Running"})
    artifacts.require_terminal_job({"status": "Complete"})
