"""An allocation is kept for as long as its lease is renewed, and no longer."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.unit.launch.allocation import SHELLS
from towline.launch.inside import keeper

# In place of `sleep`: counts the looks, and at some of them does what the test says.
SLEEP = """#!/bin/sh
cd "$TOWLINE_JOB_DIR" || exit 1
looks=0
[ ! -e looks ] || read -r looks <looks
looks=$((looks + 1))
echo "$looks" >looks
"""


@pytest.mark.parametrize("shell", SHELLS[:1], ids=lambda shell: shell[0])
@pytest.mark.parametrize(
    ("at_a_look", "looks"),
    [
        ("", 60),
        ('[ "$looks" -gt 100 ] || echo "$looks" >lease', 160),
        ('[ "$looks" -ne 5 ] || : >released', 5),
        ("echo same >lease", 61),
    ],
    ids=["nobody-ever", "renewed-for-a-while", "let-go", "the-same-text"],
)
def test_the_lease_decides(tmp_path: Path, shell: tuple[str, ...], at_a_look: str, looks: int) -> None:
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "sleep").write_text(f"{SLEEP}{at_a_look}\n")
    (tools / "sleep").chmod(0o755)
    env = {"PATH": f"{tools}:/usr/bin:/bin", "TOWLINE_JOB_DIR": str(tmp_path)}
    done = subprocess.run([*shell, "-c", keeper()], env=env, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert int((tmp_path / "looks").read_text()) == looks
    assert ("nobody has renewed" in done.stderr) == (looks != 5)
