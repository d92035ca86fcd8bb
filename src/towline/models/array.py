"""Sets of an array's task numbers, in the form that Slurm writes them: `0-3,8,10-20:5`, with a limit as `0-99%8`."""

from __future__ import annotations

import re
from collections.abc import Iterable

MOST_TASKS = 1_000_000
LARGEST_INDEX = 4_000_000
"""Slurm's own bound: MaxArraySize is at most 4000001 (slurm.conf(5))."""

_RANGE = re.compile(r"([0-9]{1,7})(?:-([0-9]{1,7})(?::([0-9]{1,7}))?)?")


def parse_tasks(text: str) -> frozenset[int]:
    """The numbers that a text names; a limit at its end (`%8`) is passed over, and empty text names none.

    Raises:
        ValueError: it is not such a text, or names a number above `LARGEST_INDEX` or more than `MOST_TASKS`.
    """
    found: set[int] = set()
    for part in filter(None, text.partition("%")[0].split(",")):
        found.update(_range(part))
    if len(found) > MOST_TASKS:
        raise ValueError(f"an array of {len(found)} tasks is more than {MOST_TASKS}")
    return frozenset(found)


def _range(part: str) -> range:
    found = _RANGE.fullmatch(part)
    if not found:
        raise ValueError(f"{part!r} is no range of task numbers; write for example 0-99, 1,3,5-9 or 0-99:10")
    first, last, step = int(found[1]), int(found[2] or found[1]), int(found[3] or 1)
    if last < first or step < 1 or last > LARGEST_INDEX:
        raise ValueError(f"{part!r} is no range of task numbers: they count up, and reach at most {LARGEST_INDEX}")
    return range(first, last + 1, step)


def format_tasks(numbers: Iterable[int]) -> str:
    """The numbers in order, with ranges where they follow each other: `0-3,8`."""
    parts: list[str] = []
    first = last = -2
    for number in [*sorted(set(numbers)), -1]:
        if number != last + 1:
            if first >= 0:
                parts.append(str(first) if first == last else f"{first}-{last}")
            first = number
        last = number
    return ",".join(parts)


def check_array(text: str) -> str:
    """An array as `sbatch --array` takes it, blanks taken out.

    Raises:
        ValueError: it is none, names no task, or its limit is not a number above 0.
    """
    text = "".join(text.split())
    tasks, percent, limit = text.partition("%")
    if not parse_tasks(tasks):
        raise ValueError("an array needs at least one task; write for example 0-99, or 0-99%8 for 8 at a time")
    if percent and not (limit.isascii() and limit.isdigit() and int(limit) > 0):
        raise ValueError(f"the limit in {text!r} is no number above 0; write for example 0-99%8 for 8 at a time")
    return text
