from __future__ import annotations

import pytest

from towline.cli.output import duration, shorten, size, table


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(-3, "0s"), (0, "0s"), (59.9, "59s"), (65, "1m05s"), (7620, "2h07m"), (90000, "1d01h"), (864000, "10d00h")],
)
def test_durations(seconds: float, text: str) -> None:
    assert duration(seconds) == text


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1.0 KiB"),
        (1536, "1.5 KiB"),
        (1 << 30, "1.0 GiB"),
        (1 << 55, "32768.0 TiB"),
    ],
)
def test_sizes(count: int, text: str) -> None:
    assert size(count) == text


def test_tables_line_up_and_are_cut() -> None:
    rows = [("a", "long cell", "x"), ("bbbb", "c", "y\x1b")]
    assert table(("ONE", "TWO", "END"), rows) == "ONE   TWO        END\na     long cell  x\nbbbb  c          y\\x1b\n"
    assert table(("ONE", "TWO", "END"), rows, width=8).splitlines()[1] == "a     l…"


def test_short_lines_stay() -> None:
    assert shorten("abc", 3) == "abc"
    assert shorten("abcd", 3) == "ab…"
    assert shorten("abcd", None) == "abcd"
