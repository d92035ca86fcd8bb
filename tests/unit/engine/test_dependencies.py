"""What has become of the job before decides whether there is anything to wait for."""

from __future__ import annotations

import pytest

from towline.engine.planning.dependencies import Predecessor, judge
from towline.models.dependency import Dependency, DependencyKind
from towline.models.errors import SpecError
from towline.models.job import JobState
from towline.models.plan import Verdict
from towline.models.spec import JobSpec

OK, FAILS = Verdict.OK, Verdict.FAILS


@pytest.mark.parametrize(
    ("kind", "state", "term", "verdict"),
    [
        ("afterok", JobState.RUNNING, "afterok:41", OK),
        ("afterok", JobState.UNKNOWN, "afterok:41", OK),
        ("afterok", JobState.SUCCEEDED, "", OK),
        ("afterok", JobState.FAILED, "", FAILS),
        ("afterok", JobState.CANCELLED, "", FAILS),
        ("aftercorr", JobState.PENDING, "aftercorr:41", OK),
        ("aftercorr", JobState.FAILED, "", FAILS),
        ("afternotok", JobState.PENDING, "afternotok:41", OK),
        ("afternotok", JobState.SUCCEEDED, "", FAILS),
        ("afternotok", JobState.CANCELLED, "", OK),
        ("afterany", JobState.FAILED, "", OK),
        ("after", JobState.RUNNING, "after:41", OK),
        ("after", JobState.CANCELLED, "", OK),
        ("singleton", JobState.RUNNING, "afterany:41", OK),
        ("afterany", JobState.REFUSED, "", FAILS),
        ("afterany", JobState.SUBMITTING, "", FAILS),
    ],
)
def test_the_state_of_the_job_before_decides(
    kind: DependencyKind, state: JobState, term: str, verdict: Verdict
) -> None:
    dependency = Dependency(kind=kind, job="" if kind == "singleton" else "train")
    found, check = judge(Predecessor(dependency, "job a00000001 (train)", state, "41", "a00000001"))
    assert (found, check.verdict) == (term, verdict)


@pytest.mark.parametrize(
    ("kind", "theirs", "ours", "verdict"),
    [
        ("aftercorr", {0, 1, 2}, {0, 1, 2}, OK),
        ("aftercorr", {0, 1, 2}, {1}, OK),
        ("aftercorr", {0, 1}, {0, 1, 2, 3}, FAILS),
        ("aftercorr", set[int](), {0, 1}, OK),
        ("afterok", {0, 1}, {0, 1, 2, 3}, OK),
    ],
)
def test_a_task_without_counterpart_would_not_wait(
    kind: DependencyKind, theirs: set[int], ours: set[int], verdict: Verdict
) -> None:
    before = Predecessor(
        Dependency(kind=kind, job="train"), "job a (train)", JobState.RUNNING, "41", tasks=frozenset(theirs)
    )
    _, check = judge(before, frozenset(ours))
    assert check.verdict is verdict
    assert ("task 2-3" in check.evidence) is (verdict is FAILS)


def test_a_job_that_slurm_does_not_have_cannot_be_waited_for() -> None:
    _, check = judge(Predecessor(Dependency(job="train"), "job a00000001 (train)", JobState.PENDING, ""))
    assert check.verdict is FAILS


class Job:
    reference = "a00000001"


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("train", ["afterok:train"]),
        ("afterany:train", ["afterany:train"]),
        (["a", "after:b_3"], ["afterok:a", "after:b_3"]),
        ({"kind": "afternotok", "job": "41"}, ["afternotok:41"]),
        ("singleton", ["singleton"]),
        (Job(), ["afterok:a00000001"]),
        ([Job(), Dependency(kind="after", job=Job())], ["afterok:a00000001", "after:a00000001"]),  # pyright: ignore[reportArgumentType]
        ((), []),
    ],
)
def test_a_dependency_is_written_in_several_ways(given: object, meant: list[str]) -> None:
    assert [str(each) for each in JobSpec.build(command=["true"], depends_on=given).depends_on] == meant


@pytest.mark.parametrize("given", ["soon:train", "afterok:", "a b", "singleton:x", "a,b", "x\n#SBATCH", 7, {"job": ""}])
def test_what_names_no_job_is_refused(given: object) -> None:
    with pytest.raises(SpecError, match="described"):
        JobSpec.build(command=["true"], depends_on=given)
