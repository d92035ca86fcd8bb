"""Spans of time and numbers of bytes as people read them."""

from __future__ import annotations


def duration(seconds: float) -> str:
    """A span of time in its two largest units: `42s`, `3m05s`, `2h07m`, `4d03h`."""
    whole = max(0, int(seconds))
    if whole < 60:
        return f"{whole}s"
    if whole < 3600:
        return f"{whole // 60}m{whole % 60:02d}s"
    if whole < 86400:
        return f"{whole // 3600}h{whole % 3600 // 60:02d}m"
    return f"{whole // 86400}d{whole % 86400 // 3600:02d}h"


def size(count: int) -> str:
    """A number of bytes in binary units: `512 B`, `1.5 KiB`."""
    if count < 1024:
        return f"{count} B"
    value, unit = float(count), "B"
    for unit in ("KiB", "MiB", "GiB", "TiB"):  # noqa: B007 - the last unit is used below
        value /= 1024
        if value < 1024:
            break
    return f"{value:.1f} {unit}"
