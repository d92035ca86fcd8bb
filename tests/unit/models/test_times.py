"""Points in time as people write them and as sbatch takes them."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from towline.models.times import check_when
from towline.models.values import check_token


@pytest.mark.parametrize(
    ("text", "taken"),
    [
        ("+2h", "now+7200seconds"),
        ("+90m", "now+5400seconds"),
        ("now", "now"),
        ("now+3days", "now+3days"),
        ("tomorrow", "tomorrow"),
        ("16:00", "16:00"),
        ("2026-03-01", "2026-03-01"),
        ("2026-03-01T08:00", "2026-03-01T08:00"),
        ("2026-03-01T08:00:30", "2026-03-01T08:00:30"),
        ("2026-03-01T08:00Z", "uts1772352000"),
        ("2026-03-01 08:00:00+01:00", "uts1772348400"),
        ("2024-02-29T00:00:00-0000", "uts1709164800"),
        ("uts1772352000", "uts1772352000"),
    ],
)
def test_times_that_are_taken(text: str, taken: str) -> None:
    assert check_when(text) == taken
    assert check_when(taken) == taken


@pytest.mark.parametrize(
    "text",
    ["", "soon", "25:00", "2026-02-30", "2025-02-29T08:00Z", "2026-13-01", "now+1fortnight", "+", "+0", "now +1", "8"],
)
def test_times_that_are_none(text: str) -> None:
    with pytest.raises(ValueError, match=r"is not a|out of range"):
        check_when(text)


@given(st.text(st.sampled_from("nowuts+0123456789:-TZ dhm"), max_size=24))
def test_what_is_taken_can_stand_in_a_directive(text: str) -> None:
    with contextlib.suppress(ValueError):
        check_token(check_when(text))
