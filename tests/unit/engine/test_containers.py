"""Which runtime starts a job's image, and what is refused because none can."""

from __future__ import annotations

import pytest

from towline.config.profile import ClusterProfile
from towline.engine.planning.containers import runtime_of
from towline.engine.planning.plans import make_plan
from towline.models.plan import Verdict
from towline.models.site import Partition, SiteFacts
from towline.models.spec import JobSpec

PYXIS, APPTAINER, NOTHING = ("pyxis",), ("apptainer", "singularity"), ()


def site(runtimes: tuple[str, ...] | None) -> SiteFacts:
    partition = Partition("batch", default=True, max_time=3600, nodes=4, cpus_per_node=8)
    return SiteFacts("lab", "22.05.8", (partition,), runtimes=runtimes)


def profile(runtime: str, image: str | None = None) -> ClusterProfile:
    values = {"name": "lab", "hosts": ("login",), "root": "/lustre/me", "runtime": runtime, "image": image}
    return ClusterProfile.model_validate(values)


@pytest.mark.parametrize(
    ("setting", "runtimes", "taken"),
    [
        ("auto", None, "pyxis"),
        ("auto", PYXIS, "pyxis"),
        ("auto", ("pyxis", "apptainer"), "pyxis"),
        ("auto", APPTAINER, "apptainer"),
        ("auto", ("singularity",), "singularity"),
        ("auto", NOTHING, "pyxis"),
        ("apptainer", PYXIS, "apptainer"),
        ("none", PYXIS, "none"),
    ],
)
def test_which_runtime_is_taken(setting: str, runtimes: tuple[str, ...] | None, taken: str) -> None:
    assert runtime_of(profile(setting), site(runtimes)) == taken


@pytest.mark.parametrize(
    ("setting", "runtimes", "job", "said"),
    [
        ("auto", PYXIS, {}, "the job names no image"),
        ("auto", NOTHING, {"image": "ubuntu"}, "lab has no container runtime: its srun has no --container-image"),
        ("pyxis", NOTHING, {"image": "ubuntu"}, ""),
        ("auto", PYXIS, {"image": "/x.sif"}, "/x.sif is an image of Apptainer's"),
        ("auto", APPTAINER, {"image": "/x.sif"}, ""),
        ("auto", APPTAINER, {"image": "/x.sif", "container": {"name": "w"}}, "a named container needs Pyxis"),
        ("none", PYXIS, {"image": "ubuntu"}, "the job names ubuntu, and the profile lab says"),
        ("none", PYXIS, {}, ""),
    ],
)
def test_what_no_runtime_can_start_is_refused(
    setting: str, runtimes: tuple[str, ...] | None, job: dict[str, object], said: str
) -> None:
    plan = make_plan(JobSpec.build(command=("true",), **job), profile(setting), site(runtimes), "a1b2c3d4")
    (check,) = [check for check in plan.checks if check.name == "image"]
    assert (check.verdict is Verdict.FAILS) == bool(said)
    assert said in check.evidence
    assert bool(check.fix) == bool(said)


def test_a_step_on_the_bare_node_has_no_container_and_the_profiles_image_is_left_out() -> None:
    plan = make_plan(JobSpec.build(command=("true",)), profile("none", "ubuntu"), site(None), "a1b2c3d4")
    assert "container" not in plan.files["script/step"].decode()
    assert "'node'" in plan.files["script/step"].decode()


def test_a_step_in_apptainer() -> None:
    spec = JobSpec.build(command=("true",), image="ubuntu", mounts=("/data",), resources={"gpus_per_node": 1})
    step = make_plan(spec, profile("apptainer"), site(None), "a1b2c3d4").files["script/step"].decode()
    words = [line.strip().rstrip("\\ ").strip("'") for line in step.splitlines()]
    at = words.index("apptainer")
    assert words[at : at + 5] == ["apptainer", "exec", "--nv", "--no-home", "--bind=/data:/data:rw"]
    assert words[-4:] == [
        "docker://docker.io/library/ubuntu:latest",
        "/bin/sh",
        "/lustre/me/jobs/a1b2c3d4/script/prelude",
        "container",
    ]
