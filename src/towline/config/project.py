"""A project's own `towline.toml`: defaults of its jobs, and what needs the user's trust first.

The file is looked for in the working directory and those above it. Its keys are those of a job's description. A file
that comes with a project that somebody else wrote must not choose whom we connect to or which shell text runs: such
keys, and the whole file when another user owns it, count only after `towline trust`, for that content.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

from towline.config.job_file import as_written
from towline.config.toml import parse_toml
from towline.models.errors import ConfigError, NotFound
from towline.models.spec import JobSpec
from towline.models.spec_errors import near

FILE = "towline.toml"
_TRUSTED = "trusted.json"
_NEVER = frozenset({"version"})
NEEDS_TRUST = frozenset({"cluster", "clusters", "command", "shell", "roles", "secrets"})
"""Keys that choose a cluster, describe one, say what runs, or which of the user's secrets it gets."""


@dataclass(frozen=True)
class Project:
    """A project file.

    Attributes:
        path: the file.
        content: what is in it, as TOML gives it.
        digest: sha256 of its bytes.
        own: whether the user, or root, owns it.
    """

    path: Path
    content: Mapping[str, object] = field(default_factory=dict[str, object])
    digest: str = ""
    own: bool = True

    @property
    def delicate(self) -> tuple[str, ...]:
        """The keys that need trust."""
        return tuple(key for key in self.content if key in NEEDS_TRUST or not self.own)

    @property
    def job_defaults(self) -> dict[str, object]:
        """What a job has when its description leaves it out."""
        return {key: as_written(value) for key, value in self.content.items() if key not in ("cluster", "clusters")}


def find_project(directory: Path) -> Project | None:
    """The nearest `towline.toml` in the directory or above it.

    Raises:
        ConfigError: it cannot be read, is not TOML, or has keys that are none.
    """
    for folder in (directory, *directory.parents):
        if (folder / FILE).is_file():
            return read_project(folder / FILE)
    return None


def read_project(path: Path) -> Project:
    """Read one project file.

    Raises:
        NotFound: there is no such file.
        ConfigError: it cannot be read, is not TOML, or has keys that are none.
    """
    try:
        data, owner = path.read_bytes(), path.stat().st_uid
    except FileNotFoundError:
        raise NotFound(f"there is no file {path}", fix=f"Name a project's {FILE}.") from None
    except OSError as error:
        raise ConfigError(f"{path} cannot be read", why=error.strerror or str(error)) from None
    content = parse_toml(path, data)
    _check_keys(path, content)
    return Project(path, content, hashlib.sha256(data).hexdigest(), owner in (0, os.geteuid()))


def check_trust(project: Project, directory: Path) -> None:
    """Return when nothing in the file needs trust, or the user trusts this very content.

    Args:
        project: the file.
        directory: the configuration directory, where trust is recorded.

    Raises:
        ConfigError: it is not trusted; the keys that need it are named.
    """
    if not project.delicate or trusted(directory).get(str(project.path)) == project.digest:
        return
    keys = ", ".join(project.delicate)
    raise ConfigError(
        f"{project.path} is not trusted",
        why=f"It sets {keys}: a project's file may say how jobs are described, but not where they run, which shell "
        "text runs or which secrets it gets" + ("." if project.own else "; and it belongs to another user."),
        fix=f"Read the file; if you trust it as it is now: towline trust {project.path}",
    )


def trusted(directory: Path) -> dict[str, str]:
    """The files that the user trusts: path → sha256 of the content."""
    try:
        found = json.loads((directory / _TRUSTED).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return {str(path): str(digest) for path, digest in cast("dict[object, object]", found).items()}


def record_trust(project: Project, directory: Path, *, remove: bool = False) -> None:
    """Remember, or forget, that the user trusts the file as it is.

    Raises:
        ConfigError: the record cannot be written.
    """
    known = {path: digest for path, digest in trusted(directory).items() if path != str(project.path)}
    if not remove:
        known[str(project.path)] = project.digest
    path = directory / _TRUSTED
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        fresh = path.with_name(f"{_TRUSTED}.{os.getpid()}")
        fresh.write_text(json.dumps(known, indent=1) + "\n", encoding="utf-8")
        fresh.replace(path)
    except OSError as error:
        raise ConfigError(f"{path} cannot be written", why=error.strerror or str(error)) from None


def _check_keys(path: Path, content: Mapping[str, object]) -> None:
    known = {*JobSpec.model_fields, *NEEDS_TRUST} - _NEVER
    for key in content:
        if key not in known:
            raise ConfigError(
                f"{path}: there is no setting {key!r}{near(key, JobSpec)}",
                why=f"A project's file gives defaults of its jobs: {', '.join(sorted(known - NEEDS_TRUST))}.",
                fix="Connection settings belong in a profile (docs/configuration.md).",
            )
