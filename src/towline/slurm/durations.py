"""Limits on time as Slurm prints them."""

from __future__ import annotations

import re

_TIME = re.compile(r"(?:(\d+)-)?(\d+):(\d{2}):(\d{2})")
_CLOCK = re.compile(r"(?:(\d+):)?(\d+)")


def parse_limit(text: str) -> int | None:
    """Seconds of `scontrol`'s `[D-]HH:MM:SS` or `MM:SS`; None for `UNLIMITED`, `NONE`, `INFINITE` and the like."""
    if found := _TIME.fullmatch(text):
        days, hours, minutes, seconds = (int(part or 0) for part in found.groups())
        return days * 86400 + hours * 3600 + minutes * 60 + seconds
    if found := _CLOCK.fullmatch(text):
        return int(found[1]) * 60 + int(found[2]) if found[1] else int(found[2]) * 60
    return None
