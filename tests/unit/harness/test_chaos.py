"""A chaos run can be repeated, and a violation is never lost."""

from __future__ import annotations

import json
from collections.abc import Generator, Sequence
from contextlib import contextmanager

import pytest

from harness.chaos import __main__ as door
from harness.chaos.registry import CHAOS, Chaos, Run, Story


class OddRunsBreak(Story):
    def play(self, run: Run) -> Sequence[str]:
        run.seen["odd" if run.number % 2 else "even"] += 1
        return ["it broke"] if run.number % 2 else []

    def settle(self) -> Sequence[str]:
        return ["still open"]


class NeverBreaks(Story):
    def play(self, run: Run) -> Sequence[str]:
        return []


@contextmanager
def odd_runs_break() -> Generator[Story, None, None]:
    yield OddRunsBreak()


@contextmanager
def never_breaks() -> Generator[Story, None, None]:
    yield NeverBreaks()


def test_a_run_is_repeated_by_seed_and_number() -> None:
    first, again, other = Run.of(3, 7), Run.of(3, 7), Run.of(4, 7)
    assert first.random.random() == again.random.random() != other.random.random()


def test_violations_are_counted_named_and_fail_the_command(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(CHAOS, "odd", Chaos("odd", 2, odd_runs_break))
    assert door.main(["odd", "--runs", "3", "--seed", "5"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert (found["name"], found["runs"], found["violations"], found["seed"]) == ("odd", 3, 3, 5)
    assert found["seen"] == {"odd": 2, "even": 1}
    assert found["details"] == ["run 1: it broke", "run 3: it broke", "at the end: still open"]


def test_a_run_without_violations_passes(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setitem(CHAOS, "calm", Chaos("calm", 2, never_breaks))
    assert door.main(["calm"]) == 0
    assert json.loads(capsys.readouterr().out)["runs"] == 2
