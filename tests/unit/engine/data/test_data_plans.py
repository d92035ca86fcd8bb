"""Which copy of data from elsewhere a job gets, and what is said when its source does not tell."""

from __future__ import annotations

import pytest

from towline.config.profile import ClusterProfile
from towline.engine.data.preparing import access_of, decide, with_keys_to_come
from towline.models.plan import Verdict
from towline.models.secrets import Secret
from towline.models.spec import JobSpec
from towline.slurm.preparation import Preparation
from towline.storage.remote import Access, Copy, Found, failure_of, name_of, problem_of

URI = "s3://sets/train"
PROFILE = ClusterProfile(name="lab", hosts=("login",), root="/lustre/me", s3_endpoint="http://store:9000")
ACCESS = access_of(JobSpec(command=("true",), inputs={"/data": URI}), PROFILE, {})
VERSION, OTHER = "1" * 64, "2" * 64


def copy(version: str = VERSION, owner: int = 1000, made: int = 0) -> Copy:
    return Copy(name_of(URI, ACCESS.variables, version), owner, made, {"version": version, "size": "10"})


def test_a_copy_of_what_the_source_has_now_is_used() -> None:
    planned, check, note = decide(URI, Found(1000, (copy(OTHER), copy()), VERSION), PROFILE, ACCESS)
    assert planned.ready
    assert planned.path == f"/lustre/me/staged/{name_of(URI, ACCESS.variables, VERSION)}/data"
    assert (check.verdict, note) == (Verdict.ON_SUBMIT, "")


@pytest.mark.parametrize("there", [(), (copy(OTHER),), (copy(owner=7),)])
def test_else_a_job_makes_one(there: tuple[Copy, ...]) -> None:
    planned, check, _ = decide(URI, Found(1000, there, VERSION, "directory", 3, 2048), PROFILE, ACCESS)
    assert (planned.ready, planned.version, planned.size) == (False, VERSION, 2048)
    assert check.verdict is Verdict.OK
    assert check.evidence.endswith("before this one starts: 3 files, 2.0 KiB")


@pytest.mark.parametrize("kind", ["credentials", "not-found", "names", "staging-python"])
def test_what_the_source_refuses_for_good_is_refused(kind: str) -> None:
    """Although there is a copy: of whom it is for may have changed."""
    found = Found(1000, (copy(),), problem=problem_of(kind, "the server answers 403", URI))
    _, check, _ = decide(URI, found, PROFILE, ACCESS)
    assert check.verdict is Verdict.FAILS
    assert check.fix


@pytest.mark.parametrize("kind", ["network", "no-python", "tool", "other"])
def test_a_source_that_cannot_be_asked_leaves_the_newest_copy_or_the_job_to_ask(kind: str) -> None:
    problem = problem_of(kind, "no answer", URI)
    planned, _, note = decide(URI, Found(1000, (copy(OTHER, made=5), copy()), problem=problem), PROFILE, ACCESS)
    assert planned.ready
    assert planned.version == OTHER
    assert "was not compared with its source: no answer" in note
    planned, check, _ = decide(URI, Found(1000, problem=problem), PROFILE, ACCESS)
    assert planned.path.endswith("+unknown/data")
    assert check.verdict is Verdict.CANNOT_TELL


@pytest.mark.parametrize(("given", "verdict"), [({}, Verdict.CANNOT_TELL), ({"HF_TOKEN": "x"}, Verdict.FAILS)])
def test_a_plan_without_the_jobs_keys_does_not_take_a_refusal_for_the_last_word(
    given: dict[str, str], verdict: Verdict
) -> None:
    spec = JobSpec(command=("true",), inputs={"/data": "hf_dataset://org/set"}, secrets=("HF_TOKEN",))
    refused = Found(1000, problem=problem_of("credentials", "the server answers 401", "hf_dataset://org/set"))
    found = with_keys_to_come("hf_dataset://org/set", refused, spec, {name: Secret(x) for name, x in given.items()})
    assert decide("hf_dataset://org/set", found, PROFILE, ACCESS)[1].verdict is verdict


def test_a_copy_is_told_from_that_of_another_store() -> None:
    elsewhere = Access({"S3_ENDPOINT_URL": "http://other:9000"})
    assert name_of(URI, ACCESS.variables, VERSION) != name_of(URI, elsewhere.variables, VERSION)


def test_only_the_keys_of_the_datas_own_sources_go_along() -> None:
    spec = JobSpec(command=("true",), inputs={"/data": URI}, env={"CLOUD_REGION": "eu-1", "OTHER": "x"})
    given = {name: Secret(f"value-of-{name}") for name in ("ACCESS_KEY", "SECRET_KEY", "HF_TOKEN", "MINE")}
    access = access_of(spec, PROFILE, given)
    assert access.variables == {"S3_ENDPOINT_URL": "http://store:9000", "CLOUD_REGION": "eu-1"}
    assert b"value-of-SECRET_KEY" in access.secrets
    assert b"HF_TOKEN" not in access.secrets
    assert b"MINE" not in access.secrets
    assert "value-of" not in repr(access)


def ended(*log: str, stage: str = "bring", **more: str) -> Preparation:
    end = {"code": "1", "stage": stage, "host": "cpu1", **more}
    return Preparation(number=1, slurm_id="41", state="ended", end=end, log=log, reference=URI)


@pytest.mark.parametrize(
    ("found", "kind", "why", "fix"),
    [
        (ended("[INFO] asking", "[ERROR] not-found: no such bucket"), "not-found", "no such bucket", "Correct the URI"),
        (ended("[ERROR] credentials: 403"), "credentials", "403", "--secret ACCESS_KEY"),
        (ended("[ERROR] space: 5 bytes are needed"), "space", "5 bytes", "data_cache"),
        (ended(stage="no-python"), "no-python", "cpu1", "staging_python"),
        (
            ended(stage="no-python", python="/x/python"),
            "staging-python",
            "/x/python, which is not there on cpu1",
            "staging_python",
        ),
        (
            ended(stage="no-python", python="/x/python", container="yes"),
            "staging-python",
            "/x/python, which is not there on `staging_image`",
            "staging_python",
        ),
        (ended("mkdir: No space left on device", stage="space"), "space", "No space left", "data_cache"),
        (ended("Traceback", "KeyError: 'x'"), "other", "KeyError", "again"),
        (ended(stage="stopped"), "stopped", "what it has brought stays", "goes on"),
        (Preparation(number=1, slurm_id="41", state="gone", reference=URI), "stopped", "its job 41", "goes on"),
    ],
)
def test_each_end_of_a_staging_job_has_its_own_words(found: Preparation, kind: str, why: str, fix: str) -> None:
    problem = failure_of(found)
    assert problem
    assert problem.kind == kind
    assert why in problem.why
    assert fix in problem.fix
