"""What of a root may go."""

from __future__ import annotations

import pytest

from towline.storage.usage import Wish, may_go, parse_usage

ANSWER = """\
root /lustre/me
job old 5000 done 0 c1
job new 10 failed 3 -
job queued 5000 done 0 -
job cut 5000 - - -
job refused 5000 - - -
code c1 90000
code c2 90000
code c3 50
data 90000 set one
data 90000 sets
data 90000 mounted
data 90000 named
data 90000 recent
data 50 young
staged 90000 abc
import 200000 idle /images/imports/i1
import 200000 queued /images/imports/i2
import 90000 idle /images/imports/i3
left 90000 jobs/.x.host.1
left 50 jobs/.y.host.1
lives queued
need /lustre/me/data/sets/coco
need /lustre/me/data/mounted
need /lustre
mention queued named
mention new recent
mention old set one
kib 900 jobs/old
kib 5 jobs/new
kib 7 data/set one
inodes 40 jobs/old
alive train-queued-a2
whole
"""
STATES = {"refused": "refused", "old": "succeeded"}
JOBS = ["jobs/old", "jobs/refused"]
OTHERS = ["staged/abc", "/images/imports/i1", "jobs/.x.host.1"]


@pytest.mark.parametrize(
    ("wish", "expected"),
    [
        (Wish(1000), [*JOBS, "code/c1", "code/c2", *OTHERS]),
        (Wish(0), ["jobs/old", "jobs/new", "jobs/refused", "code/c1", "code/c2", *OTHERS]),
        (Wish(0, kib=100), ["jobs/old"]),
        (Wish(0, states=frozenset({"refused"}), kinds=frozenset({"jobs"})), ["jobs/refused"]),
        (Wish(0, states=frozenset({"failed"}), kinds=frozenset({"jobs"})), ["jobs/new"]),
        (Wish(0, kinds=frozenset({"code"})), ["code/c2"]),
        (Wish(1000, kinds=frozenset({"logs"})), JOBS),
        (Wish(0, kinds=frozenset({"data"})), []),
        (Wish(10**6), []),
    ],
)
def test_only_what_nobody_uses_and_was_asked_for_may_go(wish: Wish, expected: list[str]) -> None:
    assert [item.path for item in may_go(parse_usage(ANSWER), STATES, (), wish)] == expected


def test_data_is_kept_for_as_long_as_a_job_names_it_and_a_day_more() -> None:
    def found(answer: str) -> list[str]:
        return [item.path for item in may_go(parse_usage(answer), STATES, (), Wish(0, kinds=frozenset({"data"})))]

    assert found(ANSWER) == []
    assert found(ANSWER.replace("job old 5000", "job old 90000")) == ["data/set one"]
    assert found(ANSWER.replace("mention new", "mention other")) == ["data/recent"]
    assert found(ANSWER.replace("lives queued\n", "")) == []  # a job that ended lately named it


def test_without_the_queue_no_job_may_go() -> None:
    usage = parse_usage(ANSWER.replace("whole\n", ""))
    assert [item.path for item in may_go(usage, STATES, (), Wish(0, kinds=frozenset({"jobs"})))] == []


def test_what_is_known_to_live_stays() -> None:
    assert "jobs/old" not in {item.path for item in may_go(parse_usage(ANSWER), STATES, {"old"}, Wish(0))}
