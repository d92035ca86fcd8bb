"""Comparing two things on a machine that is not quiet: both sides in turn, medians, and their ratio."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

from harness.bench.registry import Reading


def compare(subject: Callable[[], Any], baseline: Callable[[], Any], *, rounds: int) -> Reading:
    """Ratio of the median times of `subject` and `baseline`; the rounds' own ratios are told besides.

    Both run once before it counts; then they take turns, and who goes first changes every round, so that a
    slow spell of the machine meets both.
    """
    subject()
    baseline()
    times: dict[str, list[float]] = {"subject": [], "baseline": []}
    sides = [("subject", subject), ("baseline", baseline)]
    for _ in range(rounds):
        for name, side in sides:
            times[name].append(_timed(side))
        sides.reverse()
    medians = {name: statistics.median(taken) for name, taken in times.items()}
    parts = {f"{name}_ms": 1000 * median for name, median in medians.items()}
    ratios = sorted(mine / other for mine, other in zip(times["subject"], times["baseline"], strict=True))
    parts |= {"ratio_least": ratios[0], "ratio_median": statistics.median(ratios), "ratio_most": ratios[-1]}
    return Reading(medians["subject"] / medians["baseline"], {**parts, "rounds": rounds})


def _timed(side: Callable[[], Any]) -> float:
    start = time.perf_counter()
    side()
    return time.perf_counter() - start
