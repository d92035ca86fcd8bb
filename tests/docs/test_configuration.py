"""The profiles that the documentation shows are read without complaint."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.pages import Block, blocks
from towline.config.files import load_profile, load_profiles


@pytest.mark.parametrize("block", blocks("toml"), ids=str)
def test_profiles_in_the_documentation_are_sound(block: Block, tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text(block.text)
    profiles = load_profiles(env={"TOWLINE_CONFIG_DIR": str(tmp_path)})
    assert profiles
    assert load_profile(env={"TOWLINE_CONFIG_DIR": str(tmp_path)}) in profiles
