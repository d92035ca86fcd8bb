"""When the scheduler is asked next, from what the last look has shown."""

from __future__ import annotations

from towline.engine.watching.pace import Moment, QueuePace


def gaps(moment: Moment, looks: int) -> list[float]:
    """Seconds between the looks after a submission, each of which shows that."""
    now, found = 0.0, list[float]()
    pace = QueuePace(30.0, now)
    pace.submitted(now)
    for _ in range(looks):
        pace.looked(pace.due, moment)
        found.append(pace.due - now)
        now = pace.due
    return found


def test_looks_become_rarer_after_a_submission() -> None:
    found = gaps(Moment(), 5)
    assert found == sorted(found)
    assert found[-1] >= 30


def test_a_running_array_is_looked_at_more_often_for_its_first_minute() -> None:
    within_a_minute = sum(1 for end in _sums(gaps(Moment(arrays=True), 12)) if end <= 60)
    assert within_a_minute > sum(1 for end in _sums(gaps(Moment(), 12)) if end <= 60)
    assert gaps(Moment(arrays=True), 12)[-1] >= 30, "and not for ever"


def _sums(values: list[float]) -> list[float]:
    return [sum(values[: index + 1]) for index in range(len(values))]
