"""Paths of other storage (`s3://`, `gs://`, `hf://` …), through the package `fsspec` where it is installed."""

from __future__ import annotations

import importlib
import os
from collections.abc import Mapping
from typing import Any, Protocol, cast

from towline.models.errors import ConfigError, NotFound, UsageError


class FileSystem(Protocol):
    """What is used of one."""

    def exists(self, path: str) -> bool: ...  # noqa: D102

    def ls(self, path: str, detail: bool) -> list[str]: ...  # noqa: D102


class _Core(Protocol):
    def url_to_fs(self, url: str, **options: Any) -> tuple[FileSystem, str]: ...


def is_elsewhere(path: str) -> bool:
    """Whether a path is no path of the cluster's shared file system."""
    scheme, separator, _ = path.partition("://")
    return bool(separator) and scheme not in ("lustre", "slurm")


def exists(uri: str, env: Mapping[str, str] | None = None) -> bool:
    """Whether there is something at a URI.

    Raises:
        ConfigError: the package for it is not installed.
    """
    found, path = _open(uri, os.environ if env is None else env)
    return found.exists(path)


def names_at(uri: str, env: Mapping[str, str] | None = None) -> list[str]:
    """The names of what lies at a URI.

    Raises:
        ConfigError: the package for it is not installed.
        NotFound: there is nothing.
    """
    found, path = _open(uri, os.environ if env is None else env)
    try:
        return sorted(each.rstrip("/").rpartition("/")[2] for each in found.ls(path, detail=False))
    except FileNotFoundError:
        raise NotFound(f"there is nothing at {uri}") from None


def _open(uri: str, env: Mapping[str, str]) -> tuple[FileSystem, str]:
    scheme = uri.partition("://")[0]
    if scheme == "file":
        raise UsageError(
            f"{uri} is on this machine, where jobs cannot see it",
            fix="Bring it to the cluster with `towline push`, and name the place there.",
        )
    try:
        core = cast("_Core", importlib.import_module("fsspec.core"))
        return core.url_to_fs(uri, **(_s3_options(env) if scheme == "s3" else {}))
    except ImportError as error:
        raise ConfigError(
            f"{uri} cannot be looked at from here",
            why=str(error),
            fix=f"Install what {scheme}:// needs, for example `pip install fsspec s3fs`.",
        ) from None


def _s3_options(env: Mapping[str, str]) -> dict[str, Any]:
    """Keys and address as TAO's variables have them; without them the storage's own settings count."""
    options = {
        "key": env.get("ACCESS_KEY"),
        "secret": env.get("SECRET_KEY"),
        "endpoint_url": env.get("S3_ENDPOINT_URL"),
    }
    return {name: value for name, value in options.items() if value}
