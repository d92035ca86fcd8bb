"""Configuration as the doors use it: defaults of a project's jobs, where settings came from, and trust."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from towline.config import files, job_file, paths, project
from towline.config.job_file import JobFile
from towline.config.profile import hidden_channel
from towline.config.settings import settings
from towline.models import schema
from towline.models.resources import ALTERNATIVES
from towline.models.spec import JobSpec

_COMMANDS = ("command", "shell", "roles")


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
    values["notify"] = [hidden_channel(each) for each in found.profile.notify]
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

    What is given takes the place of what says the same in another way in the defaults: a command that of shell
    text, GPUs in total that of GPUs on each node.
    """
    merged: dict[str, Any] = _without_alternatives(dict(defaults), given, (_COMMANDS,))
    for key, value in given.items():
        before = merged.get(key)
        if isinstance(before, dict) and isinstance(value, dict):
            below, above = cast("dict[str, object]", before), cast("dict[str, object]", value)
            below = _without_alternatives(below, above, ALTERNATIVES) if key == "resources" else below
            merged[key] = {**below, **above}
        elif key == "mounts" and isinstance(before, list):
            merged[key] = [*cast("list[object]", before), *value]
        else:
            merged[key] = value
    return merged


def _without_alternatives(
    below: dict[str, Any], above: Mapping[str, Any], groups: tuple[tuple[str, ...], ...]
) -> dict[str, Any]:
    hidden = {name for group in groups if any(name in above for name in group) for name in group}
    return {key: value for key, value in below.items() if key not in hidden}


def read_job_file(path: Path) -> JobFile:
    """What a file says of a job.

    Raises:
        NotFound: there is no such file.
        SpecError: it cannot be read, or describes no job.
    """
    return job_file.read_job_file(path)


def read_spec(path: str | Path, **fields: Any) -> JobSpec:
    """A job from a YAML, TOML or JSON file, with fields that take the place of the file's.

    Raises:
        NotFound: there is no such file.
        SpecError: a value cannot be right; every wrong one is named with its line.
    """
    return build_spec(fields, read_job_file(Path(path)))


def parse_job_file(name: str, data: bytes) -> JobFile:
    """What bytes say of a job; the name's ending says how they are read.

    Raises:
        SpecError: they describe no job.
    """
    return job_file.parse_job_file(name, data)


def job_schema() -> dict[str, Any]:
    """The JSON Schema of a job's description."""
    return schema.job_schema()


def build_spec(
    given: Mapping[str, Any], file: JobFile | None = None, defaults: Mapping[str, object] | None = None
) -> JobSpec:
    """A spec from what is given, over what a file says, over a project's defaults.

    Raises:
        SpecError: a value cannot be right; the file's are named with their lines.
    """
    described = file or JobFile("")
    fields = with_defaults(given, with_defaults(described.values, defaults or {}))
    return JobSpec.read(fields, lambda key: "" if _is_given(key, given) else described.place(key))


def _is_given(key: str, given: Mapping[str, Any]) -> bool:
    table: object = given
    for part in key.split("."):
        if not isinstance(table, dict) or part not in table:
            return not isinstance(table, dict)
        table = cast("dict[str, object]", table)[part]
    return True


def trust(path: Path, *, remove: bool = False) -> project.Project:
    """Trust a project's file as it is now, or no longer; gives that file.

    Args:
        path: the file, or a directory of the project: the nearest file from there upwards is meant, as for jobs.
        remove: no longer trust it.

    Raises:
        NotFound: there is no such file.
        ConfigError: it is wrong, or the record cannot be written.
    """
    found = project.find_project(path.resolve()) if path.is_dir() else None
    found = found or project.read_project(path.resolve() / project.FILE if path.is_dir() else path.resolve())
    project.record_trust(found, paths.config_dir(), remove=remove)
    return found
