"""A submission is attended for as long as its process lives."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from towline.engine.submitting.presence import is_submitting, submitting
from towline.models.errors import ConfigError

JOB = "k3q9p0abc"
HOLD = """
import sys, time
from pathlib import Path
from towline.engine.submitting.presence import submitting
with submitting(Path(sys.argv[1]), sys.argv[2]):
    print("held", flush=True)
    time.sleep(600)
"""


def test_it_is_seen_here_and_over_when_it_is_over(tmp_path: Path) -> None:
    assert is_submitting(tmp_path, JOB) is False
    with submitting(tmp_path, JOB):
        assert is_submitting(tmp_path, JOB) is True
        assert is_submitting(tmp_path, "k3q9p0abd") is False
    assert is_submitting(tmp_path, JOB) is False
    assert list((tmp_path / "submitting").iterdir()) == []


def test_a_process_that_was_killed_submits_nothing_any_more(tmp_path: Path) -> None:
    argv = [sys.executable, "-c", HOLD, str(tmp_path), JOB]
    with subprocess.Popen(argv, stdout=subprocess.PIPE) as process:
        assert process.stdout
        process.stdout.readline()
        assert is_submitting(tmp_path, JOB) is True
        process.kill()
    assert is_submitting(tmp_path, JOB) is False
    assert list((tmp_path / "submitting").iterdir()) == []


def test_a_place_that_cannot_be_written_is_told_before_anything_is_sent(tmp_path: Path) -> None:
    (tmp_path / "submitting").write_text("in the way")
    with pytest.raises(ConfigError, match="nothing was submitted"), submitting(tmp_path, JOB):
        raise AssertionError("unreachable")
