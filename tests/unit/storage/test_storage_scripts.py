"""The room's scripts as texts."""

from __future__ import annotations

import re
import subprocess
from importlib.resources import files

import pytest

from towline.storage.scripts import script

NAMES = sorted(
    entry.name.removesuffix(".sh")
    for entry in files("towline.storage.scripts").iterdir()
    if entry.name.endswith(".sh") and entry.name != "in-use.sh"
)


@pytest.mark.parametrize("name", NAMES)
def test_a_script_is_one_sound_text(name: str) -> None:
    text = script(name)
    assert not re.search(r"^\. \./[\w-]+\.sh", text, re.MULTILINE)
    for shell in ("sh", "dash"):
        checked = subprocess.run(
            ["shellcheck", f"--shell={shell}", "-"], input=text, capture_output=True, text=True, check=False
        )
        assert checked.returncode == 0, checked.stdout
