"""What is told between the bytes of a log cuts none of its lines, and takes nothing from it."""

from __future__ import annotations

import io
import json
import re
import sys

import pytest

from towline.cli.loglines import LineFilter
from towline.cli.logstream import LogWriter
from towline.cli.view import JsonView, TextView
from towline.engine.events import AttemptBegan, Event, LogChunk, LogRewritten, NoAnswer

LOSS = LineFilter(re.compile("loss=3"))
CUT = NoAnswer("no route")


class Terminal(io.TextIOWrapper):
    def isatty(self) -> bool:
        return True


def shown(capfdbinary: pytest.CaptureFixture[bytes], *events: Event, only: LineFilter | None = None) -> bytes:
    view = TextView(log=LogWriter(only=only))
    for event in events:
        view.event(event)
    view.finish()
    return capfdbinary.readouterr().out


def rank(data: bytes, number: int = 3) -> LogChunk:
    return LogChunk("out", data, rank=number)


def test_a_silence_in_the_middle_of_a_line_does_not_cut_it(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    assert shown(capfdbinary, rank(b"epoch 1 lo"), CUT, rank(b"ss=3\n")) == b"3: epoch 1 loss=3\n"


def test_a_line_is_found_though_a_silence_came_in_the_middle(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    chunks = LogChunk("out", b"epoch 1 lo"), CUT, LogChunk("out", b"ss=3\n")
    assert shown(capfdbinary, *chunks, only=LOSS) == b"epoch 1 loss=3\n"


def test_a_new_attempt_begins_a_line_of_its_own(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    assert shown(capfdbinary, rank(b"killed in"), AttemptBegan(2), rank(b"again\n")) == b"3: killed in\n3: again\n"


def test_another_task_that_starts_again_does_not_cut_a_line(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    chunks = LogChunk("out", b"a l", task=1), AttemptBegan(2, 5), LogChunk("out", b"ine\n", task=1)
    assert shown(capfdbinary, *chunks) == b"1: a line\n"


def test_a_terminal_shows_no_rest_of_an_escape_that_a_silence_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    written = io.BytesIO()
    terminal = Terminal(written, encoding="utf-8")
    monkeypatch.setattr(sys, "stdout", terminal)
    view = TextView(log=LogWriter())
    for event in (LogChunk("out", b"one\x1b]0;ti"), CUT, LogChunk("out", b"tle\x07 two \xe2\x82"), CUT):
        view.event(event)
    view.event(LogChunk("out", b"\xac\n"))
    view.finish()
    assert written.getvalue() == "one two €\n".encode()


def test_in_json_what_was_written_anew_is_not_joined_to_what_was_there(capsys: pytest.CaptureFixture[str]) -> None:
    view = JsonView("k1", LineFilter(re.compile("loss")))
    for event in (LogChunk("out", b"loss of"), LogRewritten("1/main.out"), LogChunk("out", b"a loss\n")):
        view.event(event)
    view.finish()
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line.get("text") for line in lines] == ["loss of\n", None, "a loss\n"]
