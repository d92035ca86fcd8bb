"""Lines that faults put into the lab's configuration files, over those that it renders.

Each fault keeps its lines in a file of its own below `state/faults/conf`, so that faults come and go one by one.
"""

from __future__ import annotations

import re
from pathlib import Path

from towline.lab.layout import Layout

_KEY = re.compile(r"[^\s=:]+[\s=:]")


def put(layout: Layout, name: str, fault: str, lines: str) -> None:
    """Have a configuration file carry a fault's lines from its next writing on."""
    place = _place(layout, name) / fault
    place.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
    place.write_text(lines)


def take(layout: Layout, name: str, fault: str) -> None:
    """Forget a fault's lines, if there are any."""
    (_place(layout, name) / fault).unlink(missing_ok=True)


def is_put(layout: Layout, name: str, fault: str) -> bool:
    """Whether a fault has lines in a configuration file."""
    return (_place(layout, name) / fault).exists()


def apply(layout: Layout, name: str, text: str) -> str:
    """A configuration file with the lines of the faults that are on."""
    place = _place(layout, name)
    for path in sorted(place.iterdir()) if place.is_dir() else ():
        text = with_lines(text, path.read_text())
    return text


def with_lines(text: str, lines: str) -> str:
    """The text with each line in place of the one with the same first word, or before those with it, or at the top.

    A line that ends with `=` only takes that one away. sshd takes the first of two lines, slurmctld complains of them,
    and of Slurm's partitions there are many.
    """
    for line in lines.splitlines():
        text = _with_line(text, line)
    return text


def _with_line(text: str, line: str) -> str:
    found = _KEY.match(line)
    old = text.splitlines()
    at = [index for index, other in enumerate(old) if found and other.startswith(found[0])]
    first = at[0] if at else 0
    old[first : first + (len(at) == 1)] = [] if line.endswith("=") else [line]
    return "".join(f"{each}\n" for each in old)


def _place(layout: Layout, name: str) -> Path:
    return layout.state / "faults" / "conf" / name
