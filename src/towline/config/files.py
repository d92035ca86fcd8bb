"""Reading cluster profiles from `config.toml`, `clusters.d/*.toml` and the environment.

Files hold tables `[clusters.NAME]`; `config.toml` may also say `default_cluster = "NAME"`. The environment comes
last: `TOWLINE_CLUSTER` names the profile, `TOWLINE_<SETTING>` overrides one of its settings. A profile is checked
when it is asked for, so that a mistake in one does not stop work on another.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any, cast

from pydantic import ValidationError

from towline.config.paths import config_dir
from towline.config.profile import ClusterProfile
from towline.config.settings import near, overrides
from towline.models.errors import ConfigError, NotFound

_TOP_LEVEL = ("clusters", "default_cluster")


@dataclass(frozen=True)
class RawProfile:
    """A profile as it was read, not checked yet.

    Attributes:
        name: key of its table.
        values: its settings as TOML gave them.
        source: the file.
    """

    name: str
    values: Mapping[str, object]
    source: Path


@dataclass(frozen=True)
class RawConfig:
    """Everything that the files say.

    Attributes:
        profiles: by name, in the order they were read.
        default: `default_cluster`, empty when not given.
        directory: the configuration directory.
    """

    directory: Path
    profiles: Mapping[str, RawProfile] = field(default_factory=dict[str, RawProfile])
    default: str = ""


def load_profile(name: str | None = None, *, env: Mapping[str, str] | None = None) -> ClusterProfile:
    """The profile of that name; without one, the only profile there is or the default one.

    `name` wins over `TOWLINE_CLUSTER`, that over `default_cluster`.

    Raises:
        ConfigError: no choice can be made, or the profile has a wrong setting.
        NotFound: no profile has that name.
    """
    env = os.environ if env is None else env
    config = read_config(config_dir(env))
    return _checked(_choose(config, name or env.get("TOWLINE_CLUSTER", "")), overrides(env))


def load_profiles(*, env: Mapping[str, str] | None = None) -> tuple[ClusterProfile, ...]:
    """Every profile, as the files have it: overrides for single settings are meant for the chosen one only.

    Raises:
        ConfigError: a file or a setting in it is wrong.
    """
    config = read_config(config_dir(os.environ if env is None else env))
    return tuple(_checked(raw, {}) for raw in config.profiles.values())


def read_config(directory: Path) -> RawConfig:
    """What the files of a configuration directory say; none need exist.

    Raises:
        ConfigError: a file cannot be read, is not TOML, has unknown keys, or repeats a cluster of another.
    """
    profiles: dict[str, RawProfile] = {}
    default = ""
    for path in (directory / "config.toml", *sorted((directory / "clusters.d").glob("*.toml"))):
        document = _read(path)
        default = _default_cluster(path, document, is_main=path.parent == directory) or default
        for raw in _profiles(path, document):
            if raw.name in profiles:
                raise ConfigError(f"cluster {raw.name!r} is in two files: {profiles[raw.name].source} and {path}")
            profiles[raw.name] = raw
    return RawConfig(directory, profiles, default)


# --- Files ---


def _read(path: Path) -> dict[str, Any]:
    try:
        return _parse_toml(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} cannot be read", why=str(getattr(error, "strerror", None) or error)) from None
    except ValueError as error:
        raise ConfigError(f"{path} is not valid TOML", why=str(error)) from None


def _parse_toml(text: str) -> dict[str, Any]:
    # The standard library has the reader from Python 3.11 on; tomli is the same one for 3.10.
    loads: Callable[[str], dict[str, Any]] = import_module("tomllib" if sys.version_info >= (3, 11) else "tomli").loads
    return loads(text)


def _default_cluster(path: Path, document: Mapping[str, object], *, is_main: bool) -> str:
    allowed = _TOP_LEVEL if is_main else _TOP_LEVEL[:1]
    for key in document:
        if key not in allowed:
            raise ConfigError(
                f"{path}: there is no setting {key!r} at the top level",
                fix=f"It may have {' and '.join(allowed)}; a cluster's settings belong below a line [clusters.NAME].",
            )
    default = document.get("default_cluster", "")
    if not isinstance(default, str):
        raise ConfigError(f"{path}: default_cluster must be the name of a cluster, in quotation marks")
    return default


def _profiles(path: Path, document: Mapping[str, object]) -> list[RawProfile]:
    clusters = _table(path, "clusters", document.get("clusters", {}))
    return [RawProfile(name, _table(path, f"clusters.{name}", values), path) for name, values in clusters.items()]


def _table(path: Path, key: str, value: object) -> dict[str, object]:
    if not isinstance(value, dict):
        raise ConfigError(f"{path}: {key} must be a table, written [{key}]" + (".NAME" if key == "clusters" else ""))
    return cast("dict[str, object]", value)


# --- Choice and check ---


def _choose(config: RawConfig, name: str) -> RawProfile:
    names = ", ".join(config.profiles)
    if not config.profiles:
        raise ConfigError(
            "no cluster is configured",
            why=f"No file in {config.directory} (config.toml, clusters.d/*.toml) has a table [clusters.NAME].",
            fix="Describe yours there (docs/configuration.md), or bring up the test cluster: towline lab up",
        )
    if not name and len(config.profiles) == 1:
        return next(iter(config.profiles.values()))
    if not (wanted := name or config.default):
        raise ConfigError(
            "there are several clusters and none is the default",
            why=f"There are: {names}.",
            fix=f'Name one with --cluster, or write default_cluster = "NAME" in {config.directory}/config.toml.',
        )
    if wanted not in config.profiles:
        raise NotFound(f"there is no cluster {wanted!r}", why=f"There are: {names}.", fix="Choose one with --cluster.")
    return config.profiles[wanted]


def _checked(raw: RawProfile, from_env: Mapping[str, str]) -> ClusterProfile:
    if "name" in raw.values:
        raise ConfigError(f"{raw.source}: the cluster's name is in its line [clusters.{raw.name}], not a setting")
    try:
        return ClusterProfile.model_validate({**raw.values, **from_env, "name": raw.name})
    except ValidationError as error:
        found = [_finding(raw, from_env, dict(item)) for item in error.errors(include_url=False, include_context=False)]
        raise ConfigError(
            f"the profile of cluster {raw.name!r} is wrong", why="\n".join(found), fix="Correct it and try again."
        ) from None


def _finding(raw: RawProfile, from_env: Mapping[str, str], item: Mapping[str, Any]) -> str:
    where = [str(part) for part in item["loc"]]
    message = str(item["msg"]).removeprefix("Value error, ")
    if item["type"] == "extra_forbidden":
        message = f"there is no such setting{near(where[0])}"
    if not where:
        return f"{raw.source}: {message}"
    if where[0] in from_env:
        return f"TOWLINE_{where[0].upper()} in the environment: {message}"
    return f"{raw.source}: {where[0]}: {message}"
