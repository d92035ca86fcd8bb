"""What `./chaos heal` would call a violation."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any

import pytest

from harness.chaos.healing.counting import (
    STEPS,
    any_kind,
    longer_than_its_walltime,
    violations,
    violations_when_cancelled,
)
from harness.chaos.healing.faults import LONGEST, ONSET, random_faults
from harness.chaos.healing.play import Play
from harness.chaos.registry import Run
from towline.lab import Lab


@dataclass
class Seen(Play):
    """A job that is over, with what is left of it."""

    files: dict[str, str] = field(default_factory=dict[str, str])
    times: str = ""

    def read(self, name: str) -> str:
        return self.files.get(name, "")

    def ask(self, script: str, host: str = "login1") -> str:
        return self.times if "stat" in script else "".join(self.files[name] for name in self.files if "steps-" in name)


def seen(spans: dict[int, tuple[range, int]], count: int = STEPS, times: str = "") -> Seen:
    """Attempts with their steps and the second at which each began; a step takes a second."""
    files = {
        f"results/steps-{number}": "".join(
            f"{number} {step} {(begin + index + half) * 10**9}\n" for index, step in enumerate(steps) for half in (0, 1)
        )
        for number, (steps, begin) in spans.items()
    }
    play = Seen(Lab.default(), {}, alive=False, files={**files, "results/count.pt": f"{count}\n"}, times=times)
    play.job = {"id": "k1", "directory": "/lustre/k1"}
    return play


def job(*causes: str, state: str = "succeeded") -> dict[str, Any]:
    return {"id": "k1", "state": state, "note": "", "attempts": [{"cause": cause} for cause in causes]}


WHOLE = {1: (range(1, 9), 0), 2: (range(8, STEPS + 1), 60)}


def test_a_job_that_went_on_where_it_was_is_as_it_should_be() -> None:
    assert violations(seen(WHOLE), job("node", "")) == []


@pytest.mark.parametrize(
    ("play", "told", "found"),
    [
        (seen(WHOLE, count=STEPS - 1), job("node", ""), "it counted to 19 of 20"),
        (seen(WHOLE), job("node", "user", state="failed"), "it is failed: "),
        (seen({1: WHOLE[1], 2: (range(10, STEPS + 1), 60)}), job("node", ""), "the steps [9] were never done"),
        (seen({1: WHOLE[1], 2: (WHOLE[2][0], 7)}), job("node", ""), "attempts 1 and 2 worked at once"),
        (seen({12: (range(1, STEPS + 1), 0)}), job(*["node"] * 11, ""), "faults have cost it 11 new starts"),
    ],
)
def test_what_does_not_hold_is_said(play: Seen, told: dict[str, Any], found: str) -> None:
    assert violations(play, told) == [found]


def test_walltimes_are_no_faults() -> None:
    assert violations(seen({12: (range(1, STEPS + 1), 0)}), job(*["time"] * 11, "")) == []


def test_a_cancelled_job_may_not_begin_again() -> None:
    times = "100.5 cancelled\n90.1 attempts/1/start\n130.2 attempts/2/start\n"
    play = seen({1: (range(1, 5), 90)}, count=4, times=times)
    assert violations_when_cancelled(play, job("node", "", state="cancelled")) == [
        "attempts/2/start came after the job was cancelled"
    ]
    assert violations_when_cancelled(play, job("node", "", state="failed"))[0] == "it was cancelled, and is failed: "


def test_faults_overlap_and_each_is_taken_back() -> None:
    play = seen({})
    for number in range(1, 20):
        events = random_faults(Run.of(number, 3), play)
        assert [each.what for each in events] == [each.what for each in random_faults(Run.of(number, 3), play)]
        begins = {each.what: each.at for each in events if not each.what.startswith("no ")}
        ends = {each.what.removeprefix("no "): each.at for each in events if each.what.startswith("no ")}
        assert set(begins) - set(ends) <= {"urgent"}
        assert all(begins[what] < end <= ONSET + LONGEST for what, end in ends.items())


def test_a_job_that_is_against_its_walltime_takes_longer() -> None:
    assert f"n={STEPS}; x=0; s=3; " in str(longer_than_its_walltime().shell)
    assert longer_than_its_walltime().resources.time == 60 <= 3 * STEPS


def test_kinds_follow_from_the_seed() -> None:
    assert [any_kind(random.Random(7)) for _ in range(9)] == [any_kind(random.Random(7)) for _ in range(9)]
    assert len({any_kind(random.Random(number)).partition for number in range(50)}) == 4
