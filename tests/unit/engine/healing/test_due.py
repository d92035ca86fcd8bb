"""When a job that Slurm says has ended gets another attempt from outside."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from tests.unit.engine.records import record
from towline.engine.healing.bad_nodes import avoiding
from towline.engine.healing.due import Due, is_settling, next_due
from towline.engine.watching.verdict import Evidence
from towline.models.job import Attempt, JobState, Tasks
from towline.models.site import Partition, SiteFacts
from towline.models.spec import JobSpec
from towline.slurm.poll import AttemptFiles

STARTED = AttemptFiles(present=True, claim="7", start={"slurm_id": "7"})
NEVER = AttemptFiles(present=True)
ENDED = {"verdict": "failed", "code": "1", "reason": "exit"}
RESUMES: dict[str, Any] = {"resume": {"checkpoints": "*.pt"}}


def decided(cause: str, goes_on: str, files: AttemptFiles = STARTED) -> AttemptFiles:
    return dataclasses.replace(files, end=ENDED, decision={"class": cause, "next": goes_on, "nodes": "n1"})


@pytest.mark.parametrize(
    ("word", "files", "fields", "due"),
    [
        ("NODE_FAIL", STARTED, {}, Due("node")),
        ("NODE_FAIL", NEVER, {}, Due("node")),
        ("BOOT_FAIL", NEVER, {}, Due("node")),
        ("PREEMPTED", STARTED, {}, Due("preempted")),
        ("PREEMPTED", decided("stopped", "no"), {}, Due("preempted")),
        ("TIMEOUT", STARTED, {}, None),
        ("TIMEOUT", STARTED, RESUMES, Due("time")),
        ("TIMEOUT", decided("time", "no"), RESUMES, None),
        ("TIMEOUT", decided("time", "yes"), RESUMES, Due("time", "n1")),
        ("OUT_OF_MEMORY", STARTED, {}, None),
        ("CANCELLED", STARTED, {}, None),
        ("FAILED", decided("user", "no"), {}, None),
        ("FAILED", decided("node", "yes"), {}, Due("node", "n1")),
        ("FAILED", dataclasses.replace(STARTED, end=ENDED), {}, None),
        ("FAILED", STARTED, {}, Due("ambiguous")),
        ("FAILED", NEVER, {}, Due("ambiguous", "n2")),
        ("NODE_FAIL", dataclasses.replace(STARTED, cancelled=True), {}, None),
        ("NODE_FAIL", AttemptFiles(), {}, None),
        ("NODE_FAIL", STARTED, {"restart": "never"}, None),
    ],
)
def test_what_is_due(word: str, files: AttemptFiles, fields: dict[str, Any], due: Due | None) -> None:
    state = JobState.CANCELLED if word in ("CANCELLED", "PREEMPTED") else JobState.FAILED
    known = record(state=state, attempts=(Attempt(slurm_id="7", slurm_state=word, nodes="n2"),))
    assert next_due(known, Evidence(files), JobSpec.build(command=["true"], **fields)) == due


def test_a_job_that_slurm_has_forgotten_goes_on_only_when_nobody_told_it_to_end() -> None:
    known = record(state=JobState.CANCELLED, attempts=(Attempt(slurm_id="7", slurm_state="RUNNING"),))
    spec = JobSpec.build(command=["true"])
    assert next_due(known, Evidence(STARTED, absent=True), spec) == Due("ambiguous")
    for files in (dataclasses.replace(STARTED, signal={"signal": "TERM"}), NEVER):
        assert next_due(known, Evidence(files, absent=True), spec) is None


def test_arrays_and_jobs_that_go_on_are_left_alone() -> None:
    spec, last = JobSpec.build(command=["true"]), Attempt(slurm_id="7", slurm_state="NODE_FAIL")
    assert (
        next_due(record(state=JobState.FAILED, attempts=(last,), tasks=Tasks.of("0-1")), Evidence(STARTED), spec)
        is None
    )
    assert next_due(record(state=JobState.RUNNING, attempts=(last,)), Evidence(STARTED), spec) is None


def test_files_of_a_job_that_failed_just_now_are_waited_for() -> None:
    known = record(state=JobState.FAILED, attempts=(Attempt(slurm_id="7", slurm_state="FAILED", ended=100),))
    assert is_settling(known, Evidence(STARTED), 110)
    assert not is_settling(known, Evidence(STARTED), 140)
    assert not is_settling(known, Evidence(dataclasses.replace(STARTED, end=ENDED)), 110)


def facts(nodes: int) -> SiteFacts:
    return SiteFacts("lab", "22.05.8", (Partition("batch", default=True, nodes=nodes),))


def test_bad_nodes_are_left_out_while_enough_others_are_there() -> None:
    spec = JobSpec.build(command=["true"], resources={"nodes": 2}, exclude="n[8-9]")
    found = avoiding(spec, (), ("n1", "n9"), facts(5))
    assert found.spec.exclude == "n[8-9],n1"
    assert "n1 is left out" in found.notes[0]
    assert avoiding(spec, (), ("n1", "n9"), facts(4)).spec == spec
    asked = JobSpec.build(command=["true"], nodelist="n[1-2]")
    assert avoiding(asked, (), ("n1",), facts(5)).spec == asked
