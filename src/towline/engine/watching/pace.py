"""How often to look: often when something is about to happen, seldom in long queues."""

from __future__ import annotations

from dataclasses import dataclass

QUICK = 1.0
"""Seconds between two looks at the job's files right after a submission and while its log grows."""
SLOWEST_FILES = 5.0
GROWTH = 1.25
JOBS_PER_SECOND = 100
"""Jobs whose files are looked at in a second at most; with more of them the looks are rarer."""


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
    """For what is done as often as the scheduler is asked: `poll_interval` seconds, sooner right after a change."""
    return Pace(min(2.0, poll_interval), poll_interval)


def pace_of_end() -> Pace:
    """For the moments between the job's own end and Slurm's record of it."""
    return Pace(0.2, SLOWEST_FILES)


# --- The queue ---

SHORTEST_INTERVAL = 2.0
"""Seconds between two looks that a user may ask for."""
_CLOSEST = 0.5  # seconds between two looks, whatever happened
_CREDIT = 6.0  # looks that may come early before they are counted out
_FIRST_GROWTH = 3.0
_GROWTH_OF_ARRAYS = 1.5  # no file of a task is looked at meanwhile, so nothing else tells of their ends
_SLOWER, _SLOWEST = 1.5, 4.0  # growth in a queue where nothing moves, and how many times the interval that may become
_AWAY_SECONDS, _BUSY_SECONDS = 60.0, 600.0  # the longest pause while the controller is away, and while it says "busy"
_LONG, _SHARE = 3.0, 10  # a look that takes more seconds than this may take a tenth of the time


@dataclass(frozen=True)
class Moment:
    """What a look at the queue has shown of what comes next.

    Attributes:
        took: seconds that the look took.
        changed: whether some job is in another state than before.
        waiting: whether every job waits in the queue.
        next_end: seconds until the first walltime is over; None when nothing runs.
        next_start: seconds until Slurm expects the first start; None when it expects none.
        arrays: whether tasks of an array run.
    """

    took: float = 0.0
    changed: bool = False
    waiting: bool = False
    next_end: float | None = None
    next_start: float | None = None
    arrays: bool = False


class QueuePace:
    """When the scheduler is asked next, for all jobs of a cluster together. Times are seconds on one clock.

    Looks that come earlier than the interval are paid from a credit, which comes back with time: however many jobs
    start and end, their looks do not add up to a storm.

    Args:
        interval: seconds between two looks when nothing special is going on.
        now: the time.
    """

    def __init__(self, interval: float, now: float) -> None:
        self.interval = interval
        self._gap = min(2.0, interval)
        self._last = now - interval
        self._due = now
        self._hinted: float | None = None
        self._credit = _CREDIT
        self._slow = 1.0

    @property
    def due(self) -> float:
        """When the next look is due."""
        if self._hinted is None or self._slow > 1:
            return self._due
        return min(self._due, self._hinted)

    def submitted(self, now: float) -> None:
        """There is a new job: look soon, and then less and less often."""
        self._gap = min(2.0, self.interval)
        self._due = min(self._due, max(now, self._last + self._affordable(self._gap)))

    def hint(self, now: float) -> None:
        """A job's own files say that it began or ended: look at once, if that is affordable."""
        if self._hinted is None:
            self._hinted = max(now, self._last + self._affordable(_CLOSEST))

    def wanted(self, by: float) -> None:
        """Somebody has asked for a look at that time at the latest."""
        self._due = min(self._due, max(by, self._last + _CLOSEST))

    def looked(self, now: float, moment: Moment) -> None:
        """A look has been answered."""
        self._pay(now - self._last)
        gap = self._next_gap(moment)
        self._slow = max(1.0, self._slow / 2)
        self._schedule(now, max(gap * self._slow, _SHARE * moment.took if moment.took > _LONG else 0.0))

    def failed(self, now: float, *, busy: bool) -> None:
        """A look was not answered, or Slurm said that it has too much to do."""
        self._slow = min(self._slow * 2, 64.0)
        longest = _BUSY_SECONDS if busy else max(_AWAY_SECONDS, self.interval)
        start = self.interval if busy else min(2.0, self.interval)
        self._schedule(now, min(start * self._slow, longest))

    def _schedule(self, now: float, gap: float) -> None:
        self._last, self._due, self._hinted = now, now + gap, None

    def _next_gap(self, moment: Moment) -> float:
        if self._gap < self.interval:
            growth = _GROWTH_OF_ARRAYS if moment.arrays else _FIRST_GROWTH
            self._gap = min(self._gap * growth, self.interval)
        elif moment.waiting and not moment.changed:
            self._gap = min(self._gap * _SLOWER, self.interval * _SLOWEST)
        else:
            self._gap = self.interval
        gap = self._gap
        if self.interval <= gap < self.interval * _SLOWER and self._credit < _CREDIT:
            gap = self.interval * _SLOWER  # so that what came early is paid back
        if moment.next_end is not None and moment.next_end > 0:
            gap = min(gap, max(2.0, moment.next_end + 1.0))
        if moment.next_start is not None and moment.next_start > 0:
            gap = min(gap, max(self.interval, moment.next_start + 1.0))
        return gap if gap >= self.interval else self._affordable(gap)

    def _affordable(self, gap: float) -> float:
        """The gap, or the interval's half when too many looks came early lately."""
        return gap if self._credit >= 1 else max(gap, self.interval / 2)

    def _pay(self, gap: float) -> None:
        """A look that comes early costs a part of the credit, one that comes late brings a part back."""
        self._credit = min(_CREDIT, max(0.0, self._credit - 1 + gap / self.interval))
