"""`Notice`: what a person is told of a job, away from the terminal."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Occasion = Literal["ended", "failed", "started", "restarted", "stuck"]
"""What people can be told of: a job ended, however; it ended and did not succeed; it began to run; another attempt of
it began; it waits for something that will not come by itself."""

Tone = Literal["info", "success", "warning", "failure"]
"""How a message is shown where colours mean something; apprise's words."""


@dataclass(frozen=True)
class Notice:
    """One message.

    Attributes:
        occasions: what it is about; whoever asked for one of these gets it.
        title: a line.
        body: more lines.
        tone: how it is shown.
    """

    occasions: frozenset[Occasion]
    title: str
    body: str
    tone: Tone = "info"
