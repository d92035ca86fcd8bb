"""A recorded session shows what stood on the screen."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from harness import record


@pytest.mark.parametrize(
    ("output", "screen"),
    [
        ("one\r\ntwo\r\n", "one\ntwo"),
        ("waiting 1\r\x1b[2Kwaiting 2\r\x1b[2Kdone\r\n", "done"),
        ("kept\r\n10 %\r50 %\r100 %\r\n", "kept\n100 %"),
    ],
)
def test_lines_that_were_written_over_are_not_shown(output: str, screen: str) -> None:
    assert record.settled(output) == screen


def test_a_command_has_a_terminal_and_its_exit_status_is_kept() -> None:
    output, status = record.run(f"{sys.executable} -c 'import sys; print(sys.stdout.isatty()); sys.exit(3)'")
    assert (output.strip(), status) == ("True", 3)


def test_the_picture_needs_nothing_from_elsewhere(tmp_path: Path) -> None:
    assert record.main([str(tmp_path / "a.svg"), "title", "echo seen", "pwd"]) == 0
    picture = (tmp_path / "a.svg").read_text()
    assert "seen" in picture
    assert "url(http" not in picture
    assert os.getcwd() not in picture
