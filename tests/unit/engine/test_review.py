"""What is confirmed is what was shown: a review is named by every byte that would be sent."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from tests.unit.engine.test_planning import FACTS, JOB, PROFILE
from towline.engine.planning.plans import make_plan
from towline.engine.planning.review import Review, SeenSecret, parts_of
from towline.engine.submitting.secret_sources import Source, seen_secrets
from towline.models.plan import Plan, PlannedImage
from towline.models.spec import JobSpec

SECRETS = (SeenSecret("HF_TOKEN", "file:~/token", True), SeenSecret("KEY", "", None))


def spec(**fields: Any) -> JobSpec:
    return JobSpec.build(**{"command": ["train"], "env": {"A": "1"}, **fields})


def plan(job_id: str = JOB, **fields: Any) -> Plan:
    return make_plan(spec(**fields), PROFILE, FACTS, job_id)


def reviewed(found: Plan) -> Review:
    return Review(found.job_id, PROFILE.name, spec(), SECRETS, parts_of(found), 1000.0)


def test_the_same_job_has_no_differences_and_survives_the_file() -> None:
    made = reviewed(plan())
    again = Review.from_json(made.to_json())
    assert again == made
    assert again.hash == made.hash
    assert again.differences(plan()) == ()


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"env": {"A": "2"}}, "script/env"),
        ({"command": ["train", "--more"]}, "script/entrypoint"),
        ({"resources": {"nodes": 2}}, "script/batch"),
        ({"secrets": ["OTHER"]}, "script/secrets"),
    ],
)
def test_what_has_changed_is_named(fields: dict[str, Any], named: str) -> None:
    other = plan(**fields)
    assert named in reviewed(plan()).differences(other)
    assert reviewed(other).hash != reviewed(plan()).hash


def test_another_image_behind_the_same_tag_is_another_job() -> None:
    first = dataclasses.replace(plan(), images=(PlannedImage("x:latest", "/cache/1.sqsh", "x86_64", "sha256:1"),))
    moved = dataclasses.replace(plan(), images=(PlannedImage("x:latest", "/cache/2.sqsh", "x86_64", "sha256:2"),))
    ready = dataclasses.replace(
        plan(), images=(PlannedImage("x:latest", "/cache/1.sqsh", "x86_64", "sha256:1", ready=True),)
    )
    assert reviewed(first).differences(moved) == ("the image x:latest",)
    assert reviewed(first).differences(ready) == ()


def test_each_review_is_of_one_job() -> None:
    assert reviewed(plan()).hash != reviewed(plan("k3v9x2m4r")).hash


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"version": 2}', '{"version": 1, "parts": 3}'])
def test_what_is_no_review_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        Review.from_json(text)


def test_presence_is_told_and_no_value(tmp_path: Any) -> None:
    (tmp_path / "key").write_text("top-secret")
    words = ("A", "B", f"C=file:{tmp_path}/key", f"D=file:{tmp_path}/none", "E=env:A", "F=env:NONE", "G=prompt")
    found = seen_secrets(map(Source.parse, words), {"A": "top-secret", "TAO_ENV_FILE": "/nonexistent"})
    assert [each.present for each in found] == [True, found[1].present, True, False, True, False, None]
    assert found[1].present is not True
    assert [each.option for each in found] == list(words)
    assert "top-secret" not in repr(found)
