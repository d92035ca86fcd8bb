"""Reading `status.json`, in which a job says how far it is: one JSON object a line, as NVIDIA's TAO Toolkit writes it.

Several ranks may write at once and a line may be half written, twice there, or late. What cannot be read is passed
over, and lines count in the order of their own times; without times, in the order of the file.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from typing import Any, cast

from towline.models.report import Reported

_WORDS = ("STARTED", "RUNNING", "SUCCESS", "FAILURE", "SKIPPED")
_MOST_TEXT = 300
_MOST_FIGURES = 50


def parse_report(text: str) -> Reported | None:
    """What the end of a `status.json` says; None when no line of it can be read."""
    lines = list(_lines(text))
    if not lines:
        return None
    order = _in_order(lines)
    kpi: dict[str, float] = {}
    for line in order:
        kpi |= _figures(line.get("kpi"))
    return Reported(
        word=next((word for line in reversed(order) if (word := _word(line))), ""),
        message=_text(_newest(order, "message")),
        epoch=_count(_newest(order, "epoch", "cur_epoch")),
        epochs=_count(_newest(order, "max_epoch", "epochs", "num_epochs")),
        step=_count(_newest(order, "step", "cur_iter", "iteration")),
        steps=_count(_newest(order, "max_step", "max_steps", "max_iter", "num_steps")),
        eta=_text(_newest(order, "eta")),
        kpi=dict(list(kpi.items())[:_MOST_FIGURES]),
        written=len(lines),
    )


Line = Mapping[str, Any]


def _lines(text: str) -> Iterator[Line]:
    seen: set[str] = set()
    for line in text.splitlines():
        try:
            found = json.loads(line) if line.lstrip().startswith("{") else None
        except (ValueError, RecursionError):
            continue
        if isinstance(found, dict) and line not in seen:
            seen.add(line)
            yield cast("Line", found)


def _in_order(lines: list[Line]) -> list[Line]:
    """The lines by their own times; one without a time stays behind the one that it follows."""
    keys: list[tuple[str, int]] = []
    time = ""
    for index, line in enumerate(lines):
        time = _time(line) or time
        keys.append((time, index))
    return [line for _, line in sorted(zip(keys, lines, strict=True), key=lambda each: each[0])]


def _time(line: Line) -> str:
    """Date and time as text that sorts: TAO writes `11/30/2026` or `2026-11-30`, and `9:12:03`."""
    date, clock = line.get("date"), line.get("time")
    if not isinstance(date, str) or not isinstance(clock, str):
        return ""
    parts = [part for part in date.replace("-", "/").split("/") if part.isdecimal()]
    if len(parts) != 3:
        return ""
    year, month, day = parts if len(parts[0]) == 4 else (parts[2], parts[0], parts[1])
    hours = ":".join(part.zfill(2) for part in clock.split(":"))
    return f"{year}-{month.zfill(2)}-{day.zfill(2)} {hours}"


def _word(line: Line) -> str:
    word = str(line.get("status", "")).upper()
    return word if word in _WORDS else ""


def _newest(order: list[Line], *names: str) -> object:
    for line in reversed(order):
        for name in names:
            if line.get(name) not in (None, ""):
                return line[name]
    return None


def _text(value: object) -> str:
    return " ".join(str(value).split())[:_MOST_TEXT] if isinstance(value, (str, int, float)) else ""


def _count(value: object) -> int | None:
    number = _number(value)
    return int(number) if number is not None and abs(number) < 1 << 53 else None


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def _figures(kpi: object) -> dict[str, float]:
    """The figures of a line, those of inner tables with a dot."""
    found: dict[str, float] = {}
    if isinstance(kpi, dict):
        for name, value in cast("dict[object, object]", kpi).items():
            inner = _figures(value)
            found |= {f"{name}.{key}": number for key, number in inner.items()}
            if (number := _number(value)) is not None:
                found[str(name)[:100]] = number
    return found
