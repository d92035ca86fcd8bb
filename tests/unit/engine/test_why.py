"""What a diagnosis takes from the records of an attempt, where no line of its logs says anything."""

from __future__ import annotations

import pytest

from towline.engine.watching.why import facts_of
from towline.launch.diagnosis.verdict import judge
from towline.models.job import Attempt


@pytest.mark.parametrize(
    ("cause", "rule", "retry"), [("user", "own-code", "no"), ("ambiguous", "no-word", "yes"), ("", "failed-code", "no")]
)
def test_without_a_line_the_diagnosis_is_what_was_decided_by(cause: str, rule: str, retry: str) -> None:
    """It must not call another attempt useless that the job's own supervisor has made."""
    attempt = Attempt(slurm_id="41", slurm_state="FAILED", exit_code=69, exit_source="job", cause=cause)
    found = judge(facts_of(attempt), ())
    assert found
    assert (found.kind, found.rule, found.retry) == (cause or "ambiguous", rule, retry)
