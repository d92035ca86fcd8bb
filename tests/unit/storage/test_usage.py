"""What of a root may go."""

from __future__ import annotations

import pytest

from towline.storage.usage import Wish, may_go, parse_usage

ANSWER = """\
job old 5000 1 c1
job new 10 1 -
job queued 5000 1 -
job cut 5000 0 -
job refused 5000 0 -
code c1 90000
code c2 90000
code c3 50
kib 900 jobs/old
kib 5 jobs/new
inodes 40 jobs/old
alive train-queued-a2
whole
"""
STATES = {"refused": "refused", "old": "succeeded"}


@pytest.mark.parametrize(
    ("wish", "expected"),
    [
        (Wish(1000), ["jobs/old", "jobs/refused", "code/c1", "code/c2"]),
        (Wish(0), ["jobs/old", "jobs/new", "jobs/refused", "code/c1", "code/c2"]),
        (Wish(0, kib=100), ["jobs/old"]),
        (Wish(0, states=frozenset({"refused"}), kinds=frozenset({"jobs"})), ["jobs/refused"]),
        (Wish(0, kinds=frozenset({"code"})), ["code/c2"]),
        (Wish(1000, kinds=frozenset({"logs"})), ["jobs/old", "jobs/refused"]),
        (Wish(10**6), []),
    ],
)
def test_only_what_nobody_uses_and_was_asked_for_may_go(wish: Wish, expected: list[str]) -> None:
    assert [item.path for item in may_go(parse_usage(ANSWER), STATES, (), wish)] == expected


def test_without_the_queue_nothing_may_go() -> None:
    usage = parse_usage(ANSWER.replace("whole\n", ""))
    assert [item.path for item in may_go(usage, STATES, (), Wish(0, kinds=frozenset({"jobs"})))] == []


def test_what_is_known_to_live_stays() -> None:
    assert "jobs/old" not in {item.path for item in may_go(parse_usage(ANSWER), STATES, {"old"}, Wish(0))}
