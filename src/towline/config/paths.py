"""Where Towline keeps its configuration and its state on this machine.

Each directory has an override of its own (`TOWLINE_CONFIG_DIR`, `TOWLINE_STATE_DIR`), then follows the XDG base
directory rules: an XDG variable counts only when it is absolute. A service without HOME sets the overrides.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from pathlib import Path

from towline.models.errors import ConfigError


def config_dir(env: Mapping[str, str] | None = None) -> Path:
    """The directory of `config.toml` and `clusters.d`; it need not exist.

    Raises:
        ConfigError: neither an override nor a home directory is known.
    """
    return _directory("TOWLINE_CONFIG_DIR", "XDG_CONFIG_HOME", ".config", os.environ if env is None else env)


def state_dir(env: Mapping[str, str] | None = None) -> Path:
    """The directory of the store, sockets and crash reports; made with mode 0700 when it is missing.

    Raises:
        ConfigError: it cannot be made, belongs to another user, or others may write in it.
    """
    path = _directory("TOWLINE_STATE_DIR", "XDG_STATE_HOME", ".local/state", os.environ if env is None else env)
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        _check_private(path)
    except OSError as error:
        raise ConfigError(
            f"the state directory {path} cannot be used",
            why=error.strerror or str(error),
            fix="Make it a directory of your own, or set TOWLINE_STATE_DIR to another one.",
        ) from None
    return path


def _directory(override: str, xdg: str, fallback: str, env: Mapping[str, str]) -> Path:
    if chosen := env.get(override):
        return _absolute(override, chosen)
    if os.path.isabs(base := env.get(xdg, "")):
        return Path(base) / "towline"
    return _home(env, override) / fallback / "towline"


def _absolute(variable: str, value: str) -> Path:
    path = Path(value)
    if not path.is_absolute():
        raise ConfigError(f"{variable} must be an absolute path", why=f"It is {value!r}.")
    return path


def _home(env: Mapping[str, str], override: str) -> Path:
    if os.path.isabs(home := env.get("HOME", "")):
        return Path(home)
    try:
        return Path.home()
    except RuntimeError:
        raise ConfigError(
            "this user has no home directory", fix=f"Set {override} to the absolute path of a directory."
        ) from None


def _check_private(path: Path) -> None:
    found = path.stat()
    if found.st_uid != os.geteuid():
        raise PermissionError(0, "it belongs to another user")
    if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise PermissionError(0, f"other users may write in it (mode {stat.S_IMODE(found.st_mode):o})")
