"""`versions.yaml`: the images and packages that a bank of skills names by keys such as `tao_toolkit.pyt`."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, cast

from towline.config.yaml import read_yaml
from towline.models.errors import ConfigError, NotFound

Manifest = Mapping[str, Any]


class ManifestNotFoundError(NotFound, FileNotFoundError):
    """There is no `versions.yaml`."""


class KeyNotFoundError(NotFound, KeyError):
    """The manifest has no such key."""


def load_manifest(path: str | os.PathLike[str] | None = None) -> dict[str, Any]:
    """What a manifest says.

    Args:
        path: the file; when not given that of TAO_VERSIONS_FILE, `versions.yaml` in the working directory, or in
            TAO_SKILL_BANK_PATH, the first that is there, else the one of this package.

    Raises:
        ManifestNotFoundError: the file is not there.
        ConfigError: it is no manifest.
    """
    places = [Path(path)] if path is not None else list(_places(os.environ))
    found = next((place for place in places if place.is_file()), None)
    if found is None:
        raise ManifestNotFoundError(
            "there is no versions.yaml",
            why="Looked for: " + ", ".join(map(str, places)),
            fix="Set TAO_VERSIONS_FILE to the file, or TAO_SKILL_BANK_PATH to its directory.",
        )
    manifest = read_yaml(found)
    if not isinstance(manifest, dict):
        raise ConfigError(f"{found} is no manifest of versions", why="It must be a table with images and wheels.")
    return cast("dict[str, Any]", manifest)


def _places(env: Mapping[str, str]) -> Iterator[Path]:
    if named := env.get("TAO_VERSIONS_FILE"):
        yield Path(named)
        return
    yield Path.cwd() / "versions.yaml"
    if bank := env.get("TAO_SKILL_BANK_PATH"):
        yield Path(bank) / "versions.yaml"
    yield Path(__file__).with_name("versions.yaml")


def looks_like_key(value: str) -> bool:
    """Whether a text is a key with dots (`tao_toolkit.pyt`) and no image reference."""
    parts = value.split(".")
    return len(parts) > 1 and all(part.replace("_", "").replace("-", "").isalnum() for part in parts)


def resolve_image(key: str, manifest: Manifest | None = None) -> str:
    """The image that a key names below `images`.

    Raises:
        KeyNotFoundError: there is none.
    """
    return _resolve(key, "images", manifest)


def resolve_wheel(key: str, manifest: Manifest | None = None) -> str:
    """The requirement that a key names below `wheels`, such as that of `tao_sdk_slurm`; `wheels.` before it may stand.

    Raises:
        KeyNotFoundError: there is none.
    """
    return _resolve(key.removeprefix("wheels."), "wheels", manifest)


def resolve_container_image(value: str, manifest: Manifest | None = None) -> str:
    """An image reference or path as it is; the image of a key.

    Raises:
        KeyNotFoundError: the manifest has no such key.
        ManifestNotFoundError: a key is given and there is no manifest.
    """
    return resolve_image(value, manifest) if looks_like_key(value) else value


def _resolve(key: str, group: str, manifest: Manifest | None) -> str:
    node: object = (load_manifest() if manifest is None else manifest).get(group)
    for part in key.split("."):
        if not isinstance(node, dict) or part not in node:
            known = ", ".join(sorted(map(str, cast("dict[object, object]", node)))) if isinstance(node, dict) else ""
            raise KeyNotFoundError(
                f"versions.yaml has no {group}.{key}", why=f"At {part!r} it has {known or 'nothing'}."
            )
        node = cast("dict[str, object]", node)[part]
    if not isinstance(node, str):
        raise KeyNotFoundError(f"{group}.{key} of versions.yaml names several things", fix="Give the whole key.")
    return node
