"""Reading YAML files of others; the library is imported late."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any, cast

from towline.models.errors import ConfigError


def read_yaml(path: Path) -> object:
    """What a YAML file says, in plain values.

    Raises:
        ConfigError: it cannot be read, or is no YAML.
    """
    library = cast("Any", import_module("yaml"))  # its types are not known
    try:
        return library.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} cannot be read", why=str(getattr(error, "strerror", None) or error)) from None
    except library.YAMLError as error:
        raise ConfigError(f"{path} is no YAML", why=" ".join(str(error).split())) from None
