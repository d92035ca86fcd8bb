"""Reading TOML, with errors that name the file."""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

from towline.models.errors import ConfigError


def read_toml(path: Path) -> dict[str, Any]:
    """What a file says; nothing when there is none.

    Raises:
        ConfigError: it cannot be read or is not TOML.
    """
    try:
        return parse_toml(path, path.read_bytes())
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise ConfigError(
            f"{path} cannot be read",
            why=error.strerror or str(error),
            fix="It must be a file that you may read; another place can be chosen with TOWLINE_CONFIG_DIR.",
        ) from None


def parse_toml(path: Path, data: bytes) -> dict[str, Any]:
    """What the bytes of a file say.

    Raises:
        ConfigError: they are not TOML.
    """
    # The standard library has the reader from Python 3.11 on; tomli is the same one for 3.10.
    loads: Callable[[str], dict[str, Any]] = import_module("tomllib" if sys.version_info >= (3, 11) else "tomli").loads
    try:
        return loads(data.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path} cannot be read", why=str(error), fix="Save it as UTF-8.") from None
    except ValueError as error:
        raise ConfigError(f"{path} is not valid TOML", why=str(error), fix="Correct the line that is named.") from None
