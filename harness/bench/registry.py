"""What a benchmark is: a function that measures once, with a limit that its value must not pass."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Reading:
    """What was measured.

    Attributes:
        value: the number that the limit is for.
        parts: the numbers that it was made of, with their units in their names.
    """

    value: float
    parts: Mapping[str, float] = field(default_factory=dict[str, float])


Measure = Callable[[], Reading]


@dataclass(frozen=True)
class Benchmark:
    """A benchmark as it was declared.

    Attributes:
        name: how `./bench` calls it.
        unit: unit of the value and the limit.
        limit: the largest value that is fine.
        measure: takes one reading.
    """

    name: str
    unit: str
    limit: float
    measure: Measure

    def line(self) -> tuple[str, bool]:
        """Measure; the JSON line, and whether the value keeps the limit."""
        reading = self.measure()
        ok = reading.value <= self.limit
        parts = {name: _short(value) for name, value in reading.parts.items()}
        found = {"name": self.name, "value": _short(reading.value), "unit": self.unit, "limit": self.limit}
        return json.dumps({**found, "ok": ok, "parts": parts}), ok


BENCHMARKS: dict[str, Benchmark] = {}


def benchmark(name: str, *, unit: str, limit: float) -> Callable[[Measure], Measure]:
    """Register a function as a benchmark; the first line of its docstring is what `--list` shows."""

    def register(measure: Measure) -> Measure:
        BENCHMARKS[name] = Benchmark(name, unit, limit, measure)
        return measure

    return register


def _short(value: float) -> float:
    return value if isinstance(value, int) else float(f"{value:.4g}")
