"""A benchmark says whether it kept its limit, in a form that programs read."""

from __future__ import annotations

import json

import pytest

from harness.bench.registry import Benchmark, Reading
from harness.bench.timing import compare


@pytest.mark.parametrize(("value", "ok"), [(1.5, True), (2, True), (2.001, False)])
def test_the_line_says_whether_the_limit_is_kept(value: float, ok: bool) -> None:
    line, kept = Benchmark("trips", "calls", 2, lambda: Reading(value, {"submit": 1})).line()
    assert json.loads(line) == {
        "name": "trips",
        "value": value,
        "unit": "calls",
        "limit": 2,
        "ok": ok,
        "parts": {"submit": 1},
    }
    assert kept is ok


def test_both_sides_of_a_comparison_take_turns() -> None:
    order: list[str] = []
    reading = compare(lambda: order.append("a"), lambda: order.append("b"), rounds=4)
    assert "".join(order) == "ab" + "abbaabba"
    figures = {"subject_ms", "baseline_ms", "rounds", "ratio_least", "ratio_median", "ratio_most"}
    assert set(reading.parts) == figures
