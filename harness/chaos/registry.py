"""What a chaos run is: the same short story many times, broken at another random moment each time."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Run:
    """One telling of the story.

    Attributes:
        number: 1 for the first.
        random: the run's own source of chance; seed and number alone decide what it gives.
        seen: how often what happened; a chaos that always breaks at the same place proves little.
    """

    number: int
    random: random.Random
    seen: Counter[str] = field(default_factory=Counter[str])

    @classmethod
    def of(cls, number: int, seed: int) -> Run:
        """The run of that number; it can be repeated alone by giving the same seed."""
        return cls(number, random.Random(f"{seed}/{number}"))


class Story:
    """What is played again and again; each method returns what should have held and did not, a sentence each.

    Attributes:
        together: how many runs are played at a time.
    """

    together: int = 1

    def play(self, run: Run) -> Sequence[str]:
        """One run."""
        raise NotImplementedError

    def play_together(self, runs: Sequence[Run]) -> Sequence[Sequence[str]]:
        """Several runs at a time; what did not hold in each."""
        return [self.play(run) for run in runs]

    def settle(self) -> Sequence[str]:
        """After the last run: what takes its time, waited for once for all runs."""
        return ()


Stage = Callable[[], AbstractContextManager[Story]]
"""Sets up what all runs share, gives the story, and cleans up."""


@dataclass(frozen=True)
class Chaos:
    """A chaos run as it was declared.

    Attributes:
        name: how `./chaos` calls it.
        runs: how many runs there are when nobody says.
        stage: see `Stage`.
    """

    name: str
    runs: int
    stage: Stage


CHAOS: dict[str, Chaos] = {}


def chaos(name: str, *, runs: int) -> Callable[[Stage], Stage]:
    """Register a stage; the first line of its docstring is what `--list` shows."""

    def register(stage: Stage) -> Stage:
        CHAOS[name] = Chaos(name, runs, stage)
        return stage

    return register
