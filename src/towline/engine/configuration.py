"""Configuration as the doors use it: defaults of a project's jobs, where settings came from, and trust."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from towline.config import files, paths, project
from towline.config.settings import settings


@dataclass(frozen=True)
class Shown:
    """One setting of a profile as `towline config show` prints it.

    Attributes:
        name: the setting.
        value: its value as JSON has it.
        source: the kind of place it came from.
        origin: the place.
    """

    name: str
    value: object
    source: str
    origin: str


@dataclass(frozen=True)
class ShownProfile:
    """A profile with the place of each setting.

    Attributes:
        cluster: the profile's name.
        settings: in the order of their declaration.
        job: what the project's file gives to jobs.
        project: that file's path, or nothing.
        notes: sentences for the user.
    """

    cluster: str
    settings: tuple[Shown, ...]
    job: Mapping[str, object]
    project: str
    notes: tuple[str, ...]


def show_profile(name: str | None) -> ShownProfile:
    """The profile that commands would use, and where each value came from.

    Raises:
        ConfigError, NotFound: there is none, or it is wrong.
    """
    found = files.resolve(name)
    values = found.profile.model_dump(mode="json")
    values["mounts"] = [f"{each.source}:{each.target}:{each.mode}" for each in found.profile.mounts]
    shown = tuple(
        Shown(each.name, values[each.name], found.origins[each.name].source.value, str(found.origins[each.name]))
        for each in settings()
    )
    path = str(found.project.path) if found.project else ""
    return ShownProfile(found.profile.name, shown, found.job_defaults, path, found.notes)


def config_directory() -> Path:
    """The directory of the configuration files."""
    return paths.config_dir()


def project_defaults(cluster: str | None) -> dict[str, object]:
    """What the project's `towline.toml` gives to jobs on that cluster.

    Raises:
        ConfigError: the file is wrong or needs trust.
    """
    return files.job_defaults(cluster)


def with_defaults(given: Mapping[str, Any], defaults: Mapping[str, object]) -> dict[str, Any]:
    """The fields of a job: what is given wins; tables are merged key by key, and mounts are added up.

    A command that is given takes the place of shell text in the defaults, and the other way round.
    """
    merged: dict[str, Any] = dict(defaults)
    if "command" in given or "shell" in given:
        merged = {key: value for key, value in merged.items() if key not in ("command", "shell")}
    for key, value in given.items():
        before = merged.get(key)
        if isinstance(before, dict) and isinstance(value, dict):
            merged[key] = {**cast("dict[str, object]", before), **cast("dict[str, object]", value)}
        elif key == "mounts" and isinstance(before, list):
            merged[key] = [*cast("list[object]", before), *value]
        else:
            merged[key] = value
    return merged


def trust(path: Path, *, remove: bool = False) -> tuple[str, ...]:
    """Trust a project's file as it is now, or no longer; the result is the keys in it that need trust.

    Raises:
        NotFound: there is no such file.
        ConfigError: it is wrong, or the record cannot be written.
    """
    found = project.read_project(path.resolve() if path.is_file() else path.resolve() / project.FILE)
    project.record_trust(found, paths.config_dir(), remove=remove)
    return found.delicate
