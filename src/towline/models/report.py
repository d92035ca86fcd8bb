"""`Reported`: what a job itself says about how far it is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from towline.models.values import Json


@dataclass(frozen=True)
class Reported:
    """The newest that a job wrote into `status.json` in its results directory; written by the job, so not trusted.

    Attributes:
        word: `STARTED`, `RUNNING`, `SUCCESS`, `FAILURE` or `SKIPPED`; empty when no line says.
        message: the newest message.
        epoch, epochs: the epoch it is in and how many there are; None when it does not say.
        step, steps: the same for steps.
        eta: its own forecast of the time left, as it wrote it.
        kpi: its newest figures.
        written: how many lines could be read of those that were looked at.
    """

    word: str = ""
    message: str = ""
    epoch: int | None = None
    epochs: int | None = None
    step: int | None = None
    steps: int | None = None
    eta: str = ""
    kpi: Mapping[str, float] = field(default_factory=dict[str, float])
    written: int = 0

    @property
    def over(self) -> bool:
        """Whether the job says that it has come to its end."""
        return self.word in ("SUCCESS", "FAILURE", "SKIPPED")

    def as_dict(self) -> dict[str, Json]:
        """What is known, by the names of the attributes."""
        known: dict[str, Json] = {
            "word": self.word,
            "message": self.message,
            "epoch": self.epoch,
            "epochs": self.epochs,
            "step": self.step,
            "steps": self.steps,
            "eta": self.eta,
        }
        return {**{name: value for name, value in known.items() if value not in ("", None)}, "kpi": dict(self.kpi)}
