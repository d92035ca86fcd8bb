"""Node names as Slurm abbreviates them: `gpu[01-03,7],login1`."""

from __future__ import annotations

import re

MOST = 20_000
"""Names in one list; no cluster has more nodes."""

_PART = re.compile(r"(?:[^,\[]|\[[^\]]*\])+")
_RANGES = re.compile(r"\[([0-9,-]+)\]")


def expand_nodes(text: str) -> tuple[str, ...]:
    """Every node's name, in order; a part that cannot be read stays as it is."""
    names: list[str] = []
    for part in _PART.findall(text):
        names += _expand(part, MOST - len(names))
    return tuple(names[:MOST])


def _expand(part: str, most: int) -> list[str]:
    found = _RANGES.search(part)
    if not found:
        return [part.strip()] if part.strip() else []
    tails = _expand(part[found.end() :], most) or [""]
    numbers = [number for each in found[1].split(",") for number in _range(each, most)]
    return [f"{part[: found.start()]}{number}{tail}" for number in numbers for tail in tails][:most]


def _range(text: str, most: int) -> list[str]:
    """`08-10` → `08`, `09`, `10`: leading zeros stay."""
    low, dash, high = text.partition("-")
    if not dash:
        return [low]
    if not (low.isdecimal() and high.isdecimal()):
        return [text]
    return [str(number).zfill(len(low)) for number in range(int(low), min(int(high), int(low) + most) + 1)]
