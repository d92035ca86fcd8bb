"""Reading cluster profiles from `config.toml`, `clusters.d/*.toml`, a trusted `towline.toml` and the environment.

Files hold tables `[clusters.NAME]`; `config.toml` may also say `default_cluster = "NAME"`. The environment comes
last: `TOWLINE_CLUSTER` names the profile, `TOWLINE_<SETTING>` overrides one of its settings. Without any profile
the preset `tao` may be one (`towline.config.tao`). A profile is checked when it is asked for, so that a mistake in one
does not stop work on another.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

from pydantic import ValidationError

from towline.config import tao
from towline.config.origins import DEFAULT, Layer, Origin, Source, stack
from towline.config.paths import config_dir
from towline.config.profile import ClusterProfile
from towline.config.project import Project, check_trust, find_project
from towline.config.settings import near, overrides, settings
from towline.config.toml import read_toml
from towline.models.errors import ConfigError, NotFound

_TOP_LEVEL = ("clusters", "default_cluster")


@dataclass(frozen=True)
class RawProfile:
    """A profile as it was read, not checked yet.

    Attributes:
        name: key of its table.
        layer: its settings as they were written, and where.
        source: the file; None for the preset.
    """

    name: str
    layer: Layer
    source: Path | None = None


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


@dataclass(frozen=True)
class Resolved:
    """A profile with the place of each setting.

    Attributes:
        profile: the settings.
        origins: setting → the place that gave it; every setting is there.
        project: the project's file, when there is one.
        notes: what the user should know of how this came about.
    """

    profile: ClusterProfile
    origins: Mapping[str, Origin]
    project: Project | None = None
    notes: tuple[str, ...] = ()

    @property
    def job_defaults(self) -> dict[str, object]:
        """Defaults that the project's file gives to jobs; a variable for the same setting wins."""
        return _job_defaults(self.project, self.origins)


def load_profile(name: str | None = None, *, env: Mapping[str, str] | None = None) -> ClusterProfile:
    """The profile of that name; without one, the only profile there is or the default one.

    `name` wins over `TOWLINE_CLUSTER`, that over the default.

    Raises:
        ConfigError: no choice can be made, or the profile has a wrong setting.
        NotFound: no profile has that name.
    """
    return resolve(name, env=env).profile


def resolve(
    name: str | None = None, *, env: Mapping[str, str] | None = None, directory: Path | None = None
) -> Resolved:
    """The profile as `load_profile` chooses it, with where each setting came from.

    Args:
        name: the profile's name; None for the default one.
        env: the environment; this process's when not given.
        directory: where the search for a project's file begins; the working directory when not given.

    Raises:
        ConfigError: no choice can be made, a setting is wrong, or the project's file needs trust.
        NotFound: no profile has that name.
    """
    env = os.environ if env is None else env
    project = find_project(directory or Path.cwd())
    config = _with_project(read_config(config_dir(env)), project)
    variables = tao.read_tao(env)
    raw = _choose(_with_preset(config, variables, name or env.get("TOWLINE_CLUSTER", "")), name, env, variables.notes)
    if raw.source is None:
        variables.check()
    given = overrides(env)
    from_env = Layer(given, {each.name: Origin(Source.ENVIRONMENT, each.env) for each in settings()})
    layer = tao.with_conventions(stack([raw.layer, from_env]))
    origins = {each.name: layer.origins.get(each.name, DEFAULT) for each in settings()}
    return Resolved(_checked(raw, layer), origins, project, variables.notes if raw.source is None else ())


def job_defaults(
    name: str | None = None, *, env: Mapping[str, str] | None = None, directory: Path | None = None
) -> dict[str, object]:
    """What the project's file gives to jobs on that cluster; nothing when there is no such file.

    Raises:
        ConfigError: the file is wrong or needs trust.
    """
    env = os.environ if env is None else env
    project = find_project(directory or Path.cwd())
    if project is None:
        return {}
    check_trust(project, config_dir(env))
    return resolve(name, env=env, directory=directory).job_defaults


def load_profiles(*, env: Mapping[str, str] | None = None) -> tuple[ClusterProfile, ...]:
    """Every profile, as the files have it: overrides for single settings are meant for the chosen one only.

    Raises:
        ConfigError: a file or a setting in it is wrong.
    """
    config = read_config(config_dir(os.environ if env is None else env))
    return tuple(_checked(raw, raw.layer) for raw in config.profiles.values())


def read_config(directory: Path) -> RawConfig:
    """What the files of a configuration directory say; none need exist.

    Raises:
        ConfigError: a file cannot be read, is not TOML, has unknown keys, or repeats a cluster of another.
    """
    profiles: dict[str, RawProfile] = {}
    default = ""
    for path in (directory / "config.toml", *_cluster_files(directory)):
        document = read_toml(path)
        default = _default_cluster(path, document, is_main=path.parent == directory) or default
        for raw in _profiles(path, document):
            if raw.name in profiles:
                raise ConfigError(
                    f"cluster {raw.name!r} is in two files: {profiles[raw.name].source} and {path}",
                    fix="Remove it from one of them, or give it another name there.",
                )
            profiles[raw.name] = raw
    return RawConfig(directory, profiles, default)


# --- Files ---


def _cluster_files(directory: Path) -> list[Path]:
    folder = directory / "clusters.d"
    try:
        return sorted(folder / name for name in os.listdir(folder) if name.endswith(".toml"))
    except FileNotFoundError:
        return []
    except OSError as error:
        raise ConfigError(
            f"{folder} cannot be read",
            why=error.strerror or str(error),
            fix="Give yourself the right to read it, or choose another place with TOWLINE_CONFIG_DIR.",
        ) from None


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
    return [
        RawProfile(name, Layer.of_file(_table(path, f"clusters.{name}", values), path), path)
        for name, values in clusters.items()
    ]


def _table(path: Path, key: str, value: object) -> dict[str, object]:
    if not isinstance(value, dict):
        raise ConfigError(f"{path}: {key} must be a table, written [{key}]" + (".NAME" if key == "clusters" else ""))
    return cast("dict[str, object]", value)


# --- Project and preset ---


def _with_project(config: RawConfig, project: Project | None) -> RawConfig:
    if project is None:
        return config
    check_trust(project, config.directory)
    profiles = dict(config.profiles)
    for raw in _profiles(project.path, project.content):
        layer = Layer.of_file(raw.layer.values, project.path, Source.PROJECT)
        profiles[raw.name] = RawProfile(raw.name, layer, project.path)
    chosen = project.content.get("cluster", "")
    if not isinstance(chosen, str):
        raise ConfigError(f"{project.path}: cluster must be the name of a cluster, in quotation marks")
    return replace(config, profiles=profiles, default=chosen or config.default)


def _with_preset(config: RawConfig, variables: tao.TaoEnvironment, wanted: str) -> RawConfig:
    """The preset is a profile when its variables are set and no other profile is there, or it is asked for by name."""
    if not variables.complete or tao.NAME in config.profiles or (config.profiles and wanted != tao.NAME):
        return config
    preset = RawProfile(tao.NAME, variables.layer())
    return replace(config, profiles={**config.profiles, tao.NAME: preset})


def _job_defaults(project: Project | None, origins: Mapping[str, Origin]) -> dict[str, object]:
    """The project's defaults without what a variable of the environment says otherwise."""
    if project is None:
        return {}
    strong = {name for name, origin in origins.items() if origin.source is Source.ENVIRONMENT} - {"mounts"}
    found = {key: value for key, value in project.job_defaults.items() if key not in strong}
    resources = found.get("resources")
    if isinstance(resources, dict) and "time" in strong:
        found["resources"] = {k: v for k, v in cast("dict[str, object]", resources).items() if k != "time"}
    return found


# --- Choice and check ---


def _choose(config: RawConfig, name: str | None, env: Mapping[str, str], notes: tuple[str, ...]) -> RawProfile:
    names = ", ".join(config.profiles)
    name = name or env.get("TOWLINE_CLUSTER", "")
    if not config.profiles:
        none = f"No file in {config.directory} (config.toml, clusters.d/*.toml) has a table [clusters.NAME]."
        raise ConfigError(
            "no cluster is configured",
            why="\n".join([none, *notes]),
            fix="Describe yours: towline setup; or bring up the test cluster: towline lab up",
        )
    if not (name or config.default) and len(config.profiles) == 1:
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


def _checked(raw: RawProfile, layer: Layer) -> ClusterProfile:
    if "name" in layer.values:
        raise ConfigError(f"{raw.source}: the cluster's name is in its line [clusters.{raw.name}], not a setting")
    try:
        return ClusterProfile.model_validate({**layer.values, "name": raw.name})
    except ValidationError as error:
        found = [_finding(raw, layer, dict(item)) for item in error.errors(include_url=False, include_context=False)]
        raise ConfigError(
            f"the profile of cluster {raw.name!r} is wrong", why="\n".join(found), fix="Correct it and try again."
        ) from None


def _finding(raw: RawProfile, layer: Layer, item: Mapping[str, Any]) -> str:
    place = raw.source or f"the preset {raw.name}"
    where = [str(part) for part in item["loc"]]
    message = str(item["msg"]).removeprefix("Value error, ")
    if item["type"] == "extra_forbidden":
        message = f"there is no such setting{near(where[0])}"
    if not where:
        return f"{place}: {message}"
    origin = layer.origins.get(where[0])
    if origin and origin.name:
        return f"{origin}: {message}"
    return f"{place}: {where[0]}: {message}"
