"""What jobs say of their progress, however their ranks write it."""

from __future__ import annotations

import json
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from towline.models.report import Reported
from towline.storage.reports import parse_report


def line(clock: str, status: str = "RUNNING", **more: object) -> str:
    return json.dumps({"date": "11/30/2026", "time": clock, "status": status, "verbosity": "INFO", **more})


TRAINED = [
    line("9:00:00", "STARTED", message="Starting training."),
    line("9:01:00", epoch=0, max_epoch=2, kpi={"train_loss": 0.9}),
    line("9:02:00", epoch=1, max_epoch=2, eta="0:01:00", kpi={"train_loss": 0.5, "val": {"acc": "0.71"}}),
    line("10:00:01", "SUCCESS", message="Training finished successfully."),
]
END = Reported(
    "SUCCESS",
    "Training finished successfully.",
    1,
    2,
    eta="0:01:00",
    kpi={"train_loss": 0.5, "val.acc": 0.71},
    written=4,
)


def test_the_newest_of_everything_counts() -> None:
    assert parse_report("\n".join(TRAINED)) == END


@given(st.randoms(use_true_random=False), st.lists(st.text(max_size=20), max_size=5), st.integers(0, 60))
def test_torn_doubled_and_late_lines_change_nothing(rng: random.Random, noise: list[str], cut: int) -> None:
    lines = [*TRAINED, rng.choice(TRAINED), TRAINED[2][:cut]]
    rng.shuffle(lines)
    torn = [text.replace("{", "") for text in noise]
    assert parse_report("\n".join([*torn, TRAINED[1][-30:], *lines, "{", "[1]", "null"])) == END


@pytest.mark.parametrize(
    ("lines", "word"),
    [
        (["{"], None),
        ([""], None),
        (['{"epoch": 3}'], ""),
        ([line("9:00:00", "FAILURE"), line("8:59:59")], "FAILURE"),
        ([line("9:00:00", "FAILURE"), line("9:00:01", "STARTED")], "STARTED"),
        ([line("9:00:00", "SUCCESS"), line("9:00:00", "FAILURE")], "FAILURE"),
        (['{"status": "success"}', '{"status": "running"}'], "RUNNING"),
        (['{"status": "EXPLODED"}'], ""),
        ([line("23:59:59"), json.dumps({"date": "12/1/2026", "time": "0:00:01", "status": "FAILURE"})], "FAILURE"),
    ],
)
def test_the_last_word(lines: list[str], word: str | None) -> None:
    found = parse_report("\n".join(lines))
    assert (found.word if found else None) == word


@given(st.text())
def test_no_text_upsets_it(text: str) -> None:
    parse_report(text)
    parse_report(
        json.dumps({"status": text, "epoch": text, "kpi": {text: text}, "message": text, "date": text, "time": text})
    )


def test_figures_that_are_none_are_left_out() -> None:
    found = parse_report(
        '{"kpi": {"a": NaN, "b": true, "c": [1], "d": 1e400, "e": 2}, "epoch": 1e300, "message": {"x": 1}}'
    )
    assert found == Reported(kpi={"e": 2.0}, written=1)
