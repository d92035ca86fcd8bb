from __future__ import annotations

import stat
from pathlib import Path

import pytest

from towline.config.paths import config_dir, state_dir
from towline.models.errors import ConfigError


@pytest.mark.parametrize(
    ("env", "expected"),
    [
        ({"TOWLINE_CONFIG_DIR": "/c", "XDG_CONFIG_HOME": "/x", "HOME": "/h"}, "/c"),
        ({"XDG_CONFIG_HOME": "/x", "HOME": "/h"}, "/x/towline"),
        ({"XDG_CONFIG_HOME": "relative", "HOME": "/h"}, "/h/.config/towline"),
        ({"HOME": "/h"}, "/h/.config/towline"),
    ],
)
def test_where_the_configuration_is(env: dict[str, str], expected: str) -> None:
    assert config_dir(env) == Path(expected)


def test_an_override_must_be_absolute() -> None:
    with pytest.raises(ConfigError, match="absolute"):
        config_dir({"TOWLINE_CONFIG_DIR": "conf"})


def test_the_state_directory_is_made_private(tmp_path: Path) -> None:
    made = state_dir({"XDG_STATE_HOME": str(tmp_path / "state")})
    assert made == tmp_path / "state" / "towline"
    assert stat.S_IMODE(made.stat().st_mode) == 0o700


def test_a_state_directory_open_to_others_is_refused(tmp_path: Path) -> None:
    tmp_path.chmod(0o777)
    with pytest.raises(ConfigError, match="cannot be used") as caught:
        state_dir({"TOWLINE_STATE_DIR": str(tmp_path)})
    assert "other users may write" in caught.value.why


def test_a_state_directory_that_is_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="cannot be used"):
        state_dir({"TOWLINE_STATE_DIR": str(tmp_path / "file")})
