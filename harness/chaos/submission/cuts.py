"""Where and how one submission is cut, drawn from the run's own chance."""

from __future__ import annotations

import random
from dataclasses import dataclass

BYTES = ("client", "wire", "hang", "master", "host")
"""What ends at a byte of the stream: the client; the connection, with a reset; the same after a silence; ssh's master;
the first login host, for good."""
STEPS = ("before", "after", "group-before", "group-after")
"""How the script on the login host ends at one of its commands; see steps.sh."""
PAUSE_SECONDS = 24
"""Longer than a claim is left alone, which is twice the lab's MessageTimeout of 10 s."""


@dataclass(frozen=True)
class Size:
    """What a submission takes that is left alone.

    Attributes:
        up, down: bytes on the wire, logging in included.
        steps: commands of the script.
    """

    up: int
    down: int
    steps: int


@dataclass(frozen=True)
class Cut:
    """What happens to one submission.

    Attributes:
        kind: one of `BYTES`, `step`, `pause`, `mute`, `race` (two clients with one id), or `none`.
        up, down: bytes after which it happens; None for never.
        step: number of the command at which it happens; 0 for none.
        how: one of `STEPS`, `pause` or `mute`.
        alive: whether the client lives on (a script's cut only).
        patience: seconds that the client goes on.
        waits: whether the job may start at once, or waits in the queue.
    """

    kind: str
    up: int | None = None
    down: int | None = None
    step: int = 0
    how: str = "none"
    alive: bool = True
    patience: float = 2.0
    waits: bool = False

    def __str__(self) -> str:
        where = f" at byte {self.up} up" if self.up is not None else f" at byte {self.down} down" if self.down else ""
        step = f" {self.how} at command {self.step}" if self.step else ""
        return f"{self.kind}{where}{step}{'' if self.alive else ', client killed'}, patience {self.patience:g}"


def draw(chance: random.Random, size: Size) -> Cut:
    """A cut, the same for the same chance."""
    kind = chance.choices((*BYTES, "step", "pause", "mute", "race", "none"), weights=(5, 4, 2, 3, 3, 10, 2, 1, 3, 1))[0]
    waits = chance.random() < 0.5
    if kind in BYTES:
        up = chance.random() < 0.7
        return Cut(
            kind,
            up=chance.randint(1, int(size.up * 1.02)) if up else None,
            down=None if up else chance.randint(1, int(size.down * 1.02)),
            waits=waits,
        )
    if kind == "step":
        how, alive = chance.choice(STEPS), chance.random() < 0.6
        return Cut(kind, step=chance.randint(1, 8 * size.steps // 5), how=how, alive=alive, waits=waits)
    if kind == "pause":
        patience = chance.choice((0.0, 3 * PAUSE_SECONDS))
        step = chance.randint(size.steps // 3, size.steps)
        return Cut(kind, step=step, how="pause", alive=bool(patience), patience=patience, waits=waits)
    if kind == "mute":
        return Cut(kind, how="mute", waits=waits)
    if kind == "race" and chance.random() < 0.6:
        return Cut(kind, step=chance.randint(1, 2 * size.steps), how=chance.choice(STEPS), waits=waits)
    return Cut(kind, waits=waits)
