"""A dataset's root as the keys of a network's specification, and the inputs that its job needs for them.

What a root holds is said by a data file for each network (`config/networks`). Keys that the specification has already
are taken as they are.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from towline.config.networks import read_network
from towline.config.specs import read_specs, specs_text
from towline.models.errors import SpecError
from towline.models.parts import check_uri, is_remote, scheme_of, shared_path
from towline.models.plan import Check, Verdict
from towline.models.spec import JobSpec

MOUNT = "/data"
"""Where jobs find datasets that are brought from elsewhere, each below the name of its split."""
_HAS_PARTS = ("s3", "gs", "hf", "hf_model", "hf_dataset")
"""Schemes of sources that say whether they have a file below a root."""


@dataclass(frozen=True)
class Placed:
    """A specification with its datasets.

    Attributes:
        specs: the specification; the one that was given is not changed.
        inputs: what its job needs, as `JobSpec.inputs` takes it: whatever lacks is named before the job is sent.
        keys: key of the specification → the path that it has now.
        parts: URIs of files that roots elsewhere must have.
    """

    specs: dict[str, Any]
    inputs: dict[str, str]
    keys: dict[str, str] = field(default_factory=dict[str, str])
    parts: tuple[str, ...] = ()


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
    parts: list[str] = []
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
                parts += _part(roots[split], below)
    if missing := [key for split in needed for key in known.get(split, {}) if _at(filled, key) is None]:
        raise _wrong(f"{network} needs {', '.join(missing)}: give the dataset's root, or these keys")
    paths = {key: str(path) for keys in known.values() for key in keys if (path := _at(filled, key)) is not None}
    return Placed(filled, inputs, paths, tuple(dict.fromkeys(parts)))


def _part(root: str, below: str) -> list[str]:
    """The URI of what lies below a root that can be asked for it."""
    return [f"{root.rstrip('/')}/{below}"] if below != "." and scheme_of(root) in _HAS_PARTS else []


def place_datasets(spec: JobSpec) -> tuple[JobSpec, Placed | None]:
    """The spec with the inputs that its network's datasets are, and the specification filled; None without a network.

    Raises:
        SpecError: a root cannot be one, an input is in its place, or keys are missing, which are named.
        NotFound, ConfigError: there is no data file for the network, or a file cannot be read.
    """
    network = spec.network
    if network is None:
        return spec, None
    given = read_specs(Path(network.specs).expanduser()) if network.specs else {}
    placed = place(network.name, given, network.datasets, tuple(network.datasets) or ("train",))
    for target, uri in placed.inputs.items():
        if spec.inputs.get(target, uri) != uri:
            raise _wrong(f"{target} is the place of {uri} and of the input {spec.inputs[target]}")
    return spec.model_copy(update={"inputs": {**spec.inputs, **placed.inputs}}), placed


def specs_file(spec: JobSpec, placed: Placed | None, located: Mapping[str, str]) -> dict[str, bytes]:
    """The filled specification as a file of the job's directory.

    Args:
        spec: the job.
        placed: its datasets.
        located: target of each input → where the job finds it.
    """
    if spec.network is None or placed is None:
        return {}
    filled = copy.deepcopy(placed.specs)
    for key, path in placed.keys.items():
        _put(filled, key, _found_at(path, located))
    text = specs_text(filled, spec.network.suffix)
    return {f"script/specs{spec.network.suffix}": text.encode()}


def _found_at(path: str, located: Mapping[str, str]) -> str:
    """Where a path of a container is for this job: without an image nothing is mounted."""
    for target in sorted(located, key=len, reverse=True):
        if f"{path}/".startswith(f"{target.rstrip('/')}/"):
            return located[target] + path[len(target) :]
    return path


def dataset_checks(placed: Placed | None, located: Mapping[str, str]) -> tuple[Check, ...]:
    """Which keys the datasets fill with what."""
    if placed is None or not placed.keys:
        return ()
    shown = ", ".join(f"{key} = {_found_at(path, located)}" for key, path in placed.keys.items())
    return (Check("datasets", Verdict.OK, shown),)


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
