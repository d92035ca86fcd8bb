"""What a dataset's root holds: a data file for each network, here or in the user's configuration, which wins."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import cast

from towline.config.paths import config_dir
from towline.config.toml import parse_toml
from towline.models.errors import ConfigError, NotFound

Network = Mapping[str, Mapping[str, str]]
"""Split → key of the specification → path below a dataset's root."""


def known_networks() -> tuple[str, ...]:
    """The networks for which there is a data file."""
    shipped = [file.name for file in files(__name__).iterdir()]
    own = [path.name for path in _own_folder().glob("*.toml")]
    return tuple(sorted({name.removesuffix(".toml") for name in (*shipped, *own) if name.endswith(".toml")}))


def read_network(name: str) -> Network:
    """What a dataset's root holds for that network.

    Raises:
        NotFound: there is no such data file.
        ConfigError: it does not say which keys are filled with what.
    """
    if name not in known_networks():
        fix = f"There are {', '.join(known_networks())}; or write {_own_folder() / f'{name}.toml'}, or give the keys."
        raise NotFound(f"there is no data file for the network {name}", fix=fix)
    path = _own_folder() / f"{name}.toml"
    data = path.read_bytes() if path.exists() else files(__name__).joinpath(f"{name}.toml").read_bytes()
    found = parse_toml(path, data)
    for split, keys in found.items():
        if not isinstance(keys, dict) or not all(
            _is_below(value) for value in cast("dict[str, object]", keys).values()
        ):
            raise ConfigError(
                f"{path} does not say what a dataset's root holds",
                why=f"The table {split!r} must have keys of the specification, each with a path below the root.",
            )
    return cast("Network", found)


def _is_below(value: object) -> bool:
    return isinstance(value, str) and bool(value) and not value.startswith("/") and ".." not in value.split("/")


def _own_folder() -> Path:
    return config_dir() / "networks"
