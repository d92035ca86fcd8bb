from __future__ import annotations

import pytest

from towline.launch.records import EndRecord, parse_end, parse_exit, parse_fields


@pytest.mark.parametrize(
    ("text", "record"),
    [
        ("code=0\nverdict=done\nrank=\nreason=\nsrun=0\n", EndRecord("done", 0)),
        ("code=7\nverdict=failed\nrank=2\nreason=exit\n", EndRecord("failed", 7, 2, "exit")),
        ("code=143\nverdict=stopped\nrank=\nreason=stopped\n", EndRecord("stopped", 143, None, "stopped")),
        ("code=7\nverdict=failed\nrank=two\nnew_key=x\n", EndRecord("failed", 7)),
        ("", None),
        ("code=0\n", None),
        ("code=0\nverdict=failed\n", None),
        ("code=7\nverdict=done\n", None),
        ("code=256\nverdict=failed\n", None),
        ("code=-1\nverdict=failed\n", None),
        ("code=\u0667\nverdict=failed\n", None),
        ("code=99999999999999999999\nverdict=failed\n", None),
    ],
)
def test_end(text: str, record: EndRecord | None) -> None:
    assert parse_end(text) == record


@pytest.mark.parametrize(
    ("text", "record"),
    [
        ("7 self\n", (7, "self")),
        ("143 signal\n", (143, "signal")),
        ("122 unstarted\n", (122, "unstarted")),
        ("0 self", (0, "self")),
        ("", None),
        ("7", None),
        ("7 other", None),
        ("256 self", None),
        ("x self", None),
    ],
)
def test_exit(text: str, record: tuple[int, str] | None) -> None:
    assert parse_exit(text) == record


def test_fields_keep_what_follows_the_first_mark_and_pass_over_the_rest() -> None:
    assert parse_fields("nodes=node[1-2]\n\nnoise\na=b=c\n1x=2\n=3\n") == {"nodes": "node[1-2]", "a": "b=c"}
