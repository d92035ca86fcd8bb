"""How often to look: often when something is about to happen, seldom in long queues."""

from __future__ import annotations

from dataclasses import dataclass

QUICK = 1.0
"""Seconds between two looks at the job's files right after a submission and while its log grows."""
SLOWEST_FILES = 5.0
GROWTH = 1.25


@dataclass
class Pace:
    """A waiting time in seconds that grows with every quiet look and falls back when something happened.

    Attributes:
        shortest: the time after something happened.
        longest: the time after many quiet looks.
    """

    shortest: float
    longest: float

    def __post_init__(self) -> None:
        self._next = self.shortest

    def quiet(self) -> float:
        """The time to wait after a look that showed nothing new."""
        now = self._next
        self._next = min(self._next * GROWTH, self.longest)
        return now

    def happened(self) -> None:
        """Fall back to the shortest time."""
        self._next = self.shortest


def pace_of_files() -> Pace:
    """For looks at a job's own files, which cost the scheduler nothing."""
    return Pace(QUICK, SLOWEST_FILES)


def pace_of_queue(poll_interval: float) -> Pace:
    """For queries to the scheduler: `poll_interval` seconds, sooner right after a change."""
    return Pace(min(2.0, poll_interval), poll_interval)


def pace_of_end() -> Pace:
    """For the moments between the job's own end and Slurm's record of it."""
    return Pace(0.2, SLOWEST_FILES)
