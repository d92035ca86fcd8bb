"""Which job a word means."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.engine.records import SPEC, record
from towline.engine.addressing import find_job
from towline.engine.store import Store
from towline.models.errors import Ambiguous, NotFound
from towline.models.job import Attempt, JobState, Tasks


@pytest.fixture
def store(tmp_path: Path):
    opened = Store(tmp_path)
    opened.intend(record("a00000001", name="old", state=JobState.FAILED, attempts=(Attempt(slurm_id="11"),)), SPEC)
    opened.intend(record("a00000002", name="train", state=JobState.FAILED, attempts=(Attempt(slurm_id="12"),)), SPEC)
    opened.intend(record("a00000003", name="train", state=JobState.RUNNING, attempts=(Attempt(slurm_id="11"),)), SPEC)
    opened.intend(record("a00000004", name="twin", state=JobState.PENDING), SPEC)
    opened.intend(record("a00000005", name="twin", state=JobState.PENDING), SPEC)
    array = record("a00000006", name="sweep", attempts=(Attempt(slurm_id="13"),), tasks=Tasks.of("0-3"))
    opened.intend(array, SPEC)
    yield opened
    opened.close()


@pytest.mark.parametrize(
    ("reference", "job"),
    [
        ("a00000001", "a00000001"),
        ("12", "a00000002"),
        ("13_3", "a00000006_3"),
        ("a00000006[0]", "a00000006_0"),
        ("sweep_2", "a00000006_2"),
        ("12+1", "a00000002"),
        ("11", "a00000003"),
        ("old", "a00000001"),
        ("train", "a00000003"),
    ],
)
def test_a_reference_means_one_job(store: Store, reference: str, job: str) -> None:
    assert find_job(store, "lab", reference).reference == job


def test_two_live_jobs_of_one_name_are_listed_not_guessed(store: Store) -> None:
    with pytest.raises(Ambiguous) as error:
        find_job(store, "lab", "twin")
    assert "a00000004" in error.value.why
    assert "a00000005" in error.value.why


@pytest.mark.parametrize(
    "reference", ["nosuch", "99", "12_3", "sweep_4", "sweep[x]", "twin_1x", "a00000009", "", "'; DROP TABLE jobs; --"]
)
def test_what_no_job_answers_to_is_not_found(store: Store, reference: str) -> None:
    with pytest.raises(NotFound):
        find_job(store, "lab", reference)


def test_a_job_of_another_cluster_is_named_with_its_cluster(store: Store) -> None:
    with pytest.raises(NotFound) as error:
        find_job(store, "elsewhere", "a00000003")
    assert "--cluster lab" in error.value.fix
