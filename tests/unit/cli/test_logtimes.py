"""Times in log lines, in the forms that frameworks write them."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

import pytest

from towline.cli.logtimes import time_of

NOW = datetime(2026, 1, 2, 3, 0, 0, tzinfo=timezone(timedelta(hours=1)))


@pytest.mark.parametrize(
    ("line", "moment"),
    [
        ("2026-01-02 02:59:00,123 INFO step", "2026-01-02T02:59:00+01:00"),
        ("[2026/01/02 02:59:00] step", "2026-01-02T02:59:00+01:00"),
        ("2026-01-02T01:59:00.5Z step", "2026-01-02T01:59:00+00:00"),
        ("time=2026-01-02T01:59:00-05:30 step", "2026-01-02T01:59:00-05:30"),
        ("I0102 02:59:00.123456 12 file.cc:1] step", "2026-01-02T02:59:00+01:00"),
        ("[rank3]:[W1231 23:00:00.1 ProcessGroupNCCL.cpp:1] step", "2025-12-31T23:00:00+01:00"),
        ("INFO 01-02 02:59:00 engine.py:1] step", "2026-01-02T02:59:00+01:00"),
        ("02:59:00 step", "2026-01-02T02:59:00+01:00"),
        ("[23:10:00] step", "2026-01-01T23:10:00+01:00"),
        ("100%|####| 5/5 [01:02:03<00:00]", None),
        ("took 01:02:03", None),
        ("2026-02-31 02:59:00 no such day", None),
        ("loss 0.5", None),
    ],
)
def test_times_are_read(line: str, moment: str | None) -> None:
    found = time_of(line, NOW)
    assert (found and found.isoformat()) == moment
