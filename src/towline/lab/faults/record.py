"""Which faults are on: a file each below `state/faults/on`, with the arguments as its lines.

A fault is on record before it acts and until it is undone, so that one whose switching was killed can still be undone.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from towline.lab.faults.fault import Fault, Values
from towline.lab.layout import Layout


@dataclass(frozen=True)
class Active:
    """A fault that is on."""

    name: str
    values: Values

    def __str__(self) -> str:
        return " ".join([self.name, *self.values])


def active(layout: Layout) -> list[Active]:
    """The faults that are on, by name."""
    folder = _folder(layout)
    files = sorted(folder.iterdir()) if folder.is_dir() else []
    return [Active(path.name.partition("@")[0], tuple(path.read_text().splitlines())) for path in files]


def add(layout: Layout, fault: Fault, values: Values) -> None:
    """Have a fault on record, in place of what was on record for the same place."""
    _folder(layout).mkdir(mode=0o755, parents=True, exist_ok=True)
    _file(layout, fault, values).write_text("".join(f"{value}\n" for value in values))


def remove(layout: Layout, fault: Fault, values: Values) -> None:
    """Forget a fault that is on record."""
    _file(layout, fault, values).unlink(missing_ok=True)


def _folder(layout: Layout) -> Path:
    return layout.state / "faults" / "on"


def _file(layout: Layout, fault: Fault, values: Values) -> Path:
    return _folder(layout) / (f"{fault.name}@{values[0]}" if fault.is_per_host else fault.name)
