"""Lists of node names as Slurm writes them: `node[1-3,7],gpu-a` (hostlist expressions, `scontrol show hostnames`)."""

from __future__ import annotations

import re
from collections.abc import Iterator

_PARTS = re.compile(r"(?:[^,\[\]]|\[[^\]]*\])+")
_BRACKET = re.compile(r"\[([^\]]*)\]")
_RANGE = re.compile(r"(\d+)(?:-(\d+))?")
MOST = 100_000
"""Names that a list may stand for; one that a job has written may say anything."""


def host_names(text: str) -> tuple[str, ...]:
    """Every name that the list stands for, in order and once; what is no list of names stands for nothing."""
    names: dict[str, None] = {}
    for part in _PARTS.findall(text):
        for name in _expanded(part.strip()):
            if name:
                names[name] = None
            if len(names) > MOST:
                return ()
    return tuple(names)


def _expanded(text: str) -> Iterator[str]:
    found = _BRACKET.search(text)
    if not found:
        yield text
        return
    for piece in found[1].split(","):
        for number in _numbers(piece.strip()):
            for rest in _expanded(text[found.end() :]):
                yield f"{text[: found.start()]}{number}{rest}"


def _numbers(piece: str) -> Iterator[str]:
    match = _RANGE.fullmatch(piece)
    if not match:
        return
    low, high = match[1], match[2] or match[1]
    if int(high) - int(low) > MOST:
        return
    for number in range(int(low), int(high) + 1):
        yield str(number).zfill(len(low))
