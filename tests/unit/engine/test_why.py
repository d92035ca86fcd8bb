"""What a diagnosis takes from the records of an attempt, where no line of its logs says anything."""

from __future__ import annotations

import pytest

from towline.engine.watching.why import facts_of
from towline.launch.diagnosis.verdict import judge
from towline.models.job import Attempt


@pytest.mark.parametrize(
    ("cause", "kind", "rule"), [("user", "user", "own-code"), ("ambiguous", "ambiguous", "failed-code")]
)
def test_without_a_line_the_diagnosis_is_what_was_decided_by(cause: str, kind: str, rule: str) -> None:
    attempt = Attempt(slurm_id="41", slurm_state="FAILED", exit_code=69, exit_source="job", cause=cause)
    found = judge(facts_of(attempt), ())
    assert found
    assert (found.kind, found.rule) == (cause, rule)
