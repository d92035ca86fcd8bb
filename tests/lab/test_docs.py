"""The Python examples of the documentation run as they stand."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.pages import Block, blocks


@pytest.mark.usefixtures("lab")
@pytest.mark.parametrize("block", blocks("python"), ids=str)
def test_examples_run(block: Block, tmp_path: Path) -> None:
    (tmp_path / "example.py").write_text(block.text)
    done = subprocess.run(
        [sys.executable, "-W", "error", "example.py"],
        cwd=tmp_path,
        env={**os.environ, "TOWLINE_STATE_DIR": str(tmp_path / "state")},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.strip()
