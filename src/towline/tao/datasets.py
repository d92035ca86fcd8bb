"""A dataset's root as the keys of a network's specification, and the inputs that its job needs for them.

What a root holds is said by a data file for each network: `networks/<network>.toml` here, or in the folder `networks`
of the user's configuration, which wins. Keys that the specification has already are taken as they are.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any, cast

from towline.config.paths import config_dir
from towline.config.toml import parse_toml
from towline.models.errors import ConfigError, NotFound, SpecError
from towline.models.parts import check_uri, is_remote, shared_path

MOUNT = "/data"
"""Where jobs find datasets that are brought from elsewhere, each below the name of its split."""

Network = Mapping[str, Mapping[str, str]]
"""Split → key of the specification → path below a dataset's root."""


@dataclass(frozen=True)
class Placed:
    """A specification with its datasets.

    Attributes:
        specs: the specification; the one that was given is not changed.
        inputs: what its job needs, as `JobSpec.inputs` takes it: whatever lacks is named before the job is sent.
    """

    specs: dict[str, Any]
    inputs: dict[str, str]


def known_networks() -> tuple[str, ...]:
    """The networks for which there is a data file."""
    shipped = [file.name for file in files("towline.tao").joinpath("networks").iterdir()]
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
    data = path.read_bytes() if path.exists() else files("towline.tao").joinpath(f"networks/{name}.toml").read_bytes()
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


def place(
    network: str, specs: Mapping[str, Any], roots: Mapping[str, str], needed: tuple[str, ...] = ("train",)
) -> Placed:
    """Fill the keys of a specification from datasets' roots.

    Args:
        network: its name, for example `cosmos-rl`.
        specs: the specification, as its file has it.
        roots: split → root: a path of the shared file system, or a URI of data that is brought from elsewhere.
        needed: the splits of which every key must be there in the end.

    Raises:
        SpecError: a root cannot be one, the network has no such split, or keys are missing, which are named.
        NotFound, ConfigError: see `read_network`.
    """
    known = read_network(network)
    if odd := [split for split in roots if split not in known]:
        raise _wrong(f"{network} has no dataset {odd[0]!r}; there are {', '.join(known)}")
    filled = copy.deepcopy(dict(specs))
    inputs: dict[str, str] = {}
    for split, keys in known.items():
        for key, below in keys.items():
            if (given := _at(filled, key)) is not None:
                _put(filled, key, _direct(key, str(given), inputs))
            elif split in roots:
                _put(filled, key, _below_root(split, roots[split], below, inputs))
    if missing := [key for split in needed for key in known.get(split, {}) if _at(filled, key) is None]:
        raise _wrong(f"{network} needs {', '.join(missing)}: give the dataset's root, or these keys")
    return Placed(filled, inputs)


def _below_root(split: str, root: str, below: str, inputs: dict[str, str]) -> str:
    """The path that the job finds, and that it needs."""
    _check(f"the dataset {split}", root)
    top = shared_path(root) or f"{MOUNT}/{split}"
    top = top.rstrip("/") or "/"
    inputs[top] = shared_path(root) or root
    path = top if below == "." else f"{top}/{below}"
    if not is_remote(root):
        inputs[path] = path
    return path


def _direct(key: str, given: str, inputs: dict[str, str]) -> str:
    """A key that was given: its path is needed, and data from elsewhere is brought."""
    _check(key, given)
    path = shared_path(given) or f"{MOUNT}/{key}"
    inputs[path] = shared_path(given) or given
    return path


def _check(what: str, uri: str) -> None:
    try:
        check_uri(uri)
    except ValueError as error:
        raise _wrong(f"{what}: {error}") from None


def _is_below(value: object) -> bool:
    return isinstance(value, str) and bool(value) and not value.startswith("/") and ".." not in value.split("/")


def _own_folder() -> Path:
    return config_dir() / "networks"


def _at(specs: Mapping[str, Any], key: str) -> object:
    found: object = specs
    for part in key.split("."):
        found = cast("Mapping[str, object]", found).get(part) if isinstance(found, Mapping) else None
    return found


def _put(specs: dict[str, Any], key: str, value: str) -> None:
    *tables, last = key.split(".")
    for part in tables:
        inner = specs.setdefault(part, {})
        if not isinstance(inner, dict):
            raise _wrong(f"{key}: {part} is no table in the specification")
        specs = cast("dict[str, Any]", inner)
    specs[last] = value


def _wrong(why: str) -> SpecError:
    return SpecError("the datasets cannot be used as they are given", why=why, fix="Nothing was sent to the cluster.")
