"""The documentation of `--json` names every field that is printed."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.unit.cli.fake_cluster import FakeCluster, FakeJob, ended, out, record
from tests.unit.engine.test_review import plan, reviewed
from towline.cli.documents import job_as_dict
from towline.cli.review import review_as_dict
from towline.engine.events import ResultFile, StateChanged
from towline.models.diagnosis import Diagnosis
from towline.models.job import JobState
from towline.models.plan import Verdict

PAGE = (Path(__file__).parents[3] / "docs" / "json.md").read_text()


def rows(heading: str) -> list[list[str]]:
    """The words in code spans, cell by cell, of the table below a heading."""
    section = re.split(r"\n#+ ", PAGE.partition(f"# {heading}\n")[2])[0]
    lines = [line.split("|")[1:] for line in section.splitlines() if line.startswith("| `")]
    return [[" ".join(re.findall(r"`(\w+)`", cell)) for cell in line] for line in lines]


def fields(heading: str) -> set[str]:
    """The words in the first column of the table below a heading."""
    return {word for row in rows(heading) for word in row[0].split()}


def test_jobs_and_attempts() -> None:
    job = job_as_dict(ended(0))
    assert fields("Job") == set(job)
    assert fields("Attempt") == set(job["attempts"][0])
    assert fields("Diagnosis") == set(dataclasses.asdict(Diagnosis("user")))


def test_states_and_verdicts() -> None:
    for word in (*JobState, *Verdict):
        assert f"`{word.value}`" in PAGE


def test_plans_and_exits(towline: Callable[..., Any], cluster: FakeCluster) -> None:
    document = towline("run", "--dry-run", "--json", "--", "x").document
    assert fields("Plan") == set(document["plan"])
    assert fields("Exit") == set(document["exit"])
    for name in document["plan"]["checks"][0]:
        assert f'"{name}"' in PAGE


def test_a_review_tells_first_what_decides_and_files_by_their_hashes() -> None:
    made = plan()
    shown = review_as_dict(reviewed(made), made, (), bodies=False)
    assert [word for row in rows("Review") for word in row[0].split()] == list(shown)
    assert list(shown)[:5] == ["hash", "missing", "notes", "gpu_hours", "estimate"]
    batch = next(each for each in shown["files"] if each["path"] == "script/batch")
    content = made.files["script/batch"]
    assert batch == {"path": "script/batch", "size": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    assert set(shown["plan"]) == fields("Plan") - {"files"}
    assert len(json.dumps(shown)) < 12_000
    whole = review_as_dict(reviewed(made), made, (), bodies=True)
    assert whole["plan"]["files"]["script/batch"] == made.script


def test_events(towline: Callable[..., Any], cluster: FakeCluster) -> None:
    cluster.job = FakeJob(record(), (StateChanged(record()), out(b"x"), StateChanged(ended(0))))
    printed = towline("run", "--json", "--", "x").documents
    assert {each["event"] for each in printed} <= fields("Events")
    for each in printed:
        (told,) = [row[1].split() for row in rows("Events") if row[0] == each["event"]]
        assert set(each) - {"event"} <= set(told)


@pytest.mark.parametrize(
    "args",
    [
        ["ps"],
        ["status", "41"],
        ["why", "41"],
        ["cancel", "41"],
        ["wait", "41"],
        ["results", "41"],
        ["results", "--pull", "/nowhere", "41"],
        ["version"],
    ],
)
def test_each_commands_document(towline: Callable[..., Any], cluster: FakeCluster, args: list[str]) -> None:
    cluster.known = [FakeJob(ended(0), files=(ResultFile("a", 1, 2),))]
    document = towline(*args, "--json").document
    command = " ".join(word.replace("/nowhere", "DEST") for word in args if word != "41")
    (row,) = [line for line in PAGE.splitlines() if line.startswith(f"| `towline {command} --json`")]
    (result,) = document.get("results", [{}])
    for name in (*document, *result, *result.get("pulled", ())):
        assert f'"{name}"' in row
