"""Specifications of networks: read in TOML, YAML or JSON, and written in the same way."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, cast

from towline.config.toml import parse_toml
from towline.config.write import toml_text
from towline.config.yaml import read_yaml
from towline.models.errors import ConfigError


def read_specs(path: Path) -> dict[str, Any]:
    """A specification, read as its name's ending says: `.toml`, and YAML for all others, of which JSON is a part.

    Raises:
        ConfigError: it cannot be read, or is no table.
    """
    if path.suffix == ".toml":
        try:
            return parse_toml(path, path.read_bytes())
        except OSError as error:
            raise ConfigError(
                f"{path} cannot be read",
                why=error.strerror or str(error),
                fix="Name a specification that you may read.",
            ) from None
    found = read_yaml(path)
    if not isinstance(found, dict):
        raise ConfigError(f"{path} is no specification", why="It is no table of keys and values.")
    return cast("dict[str, Any]", found)


def specs_text(specs: Mapping[str, Any], suffix: str) -> str:
    """A specification as a file with that ending: TOML for `.toml`, else JSON, which is YAML, too."""
    if suffix == ".toml":
        return "\n".join(_tables(specs, ())).lstrip("\n") + "\n"
    return json.dumps(specs, indent=1, default=str, ensure_ascii=False) + "\n"


def _tables(table: Mapping[str, Any], name: tuple[str, ...]) -> Iterator[str]:
    if name:
        yield f"\n[{'.'.join(map(toml_text, name))}]"
    inner = {key: cast("dict[str, Any]", value) for key, value in table.items() if isinstance(value, dict)}
    yield from (f"{toml_text(key)} = {toml_text(value)}" for key, value in table.items() if key not in inner)
    for key, value in inner.items():
        yield from _tables(value, (*name, key))
