"""Writing profiles: a file for each below `clusters.d`, and the default's name in `config.toml`."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from datetime import date, time
from pathlib import Path
from typing import cast

from pydantic import ValidationError

from towline.config.profile import ClusterProfile
from towline.models.errors import ConfigError, UsageError

_DEFAULT = re.compile(r"^default_cluster\s*=.*$", re.MULTILINE)


def profile_toml(name: str, values: Mapping[str, object]) -> str:
    """A profile's table; settings without a value are left out."""
    lines = [f"{key} = {toml_text(value)}" for key, value in values.items() if value not in (None, "", [], ())]
    return "\n".join([f"[clusters.{toml_text(name)}]", *lines]) + "\n"


def toml_text(value: object) -> str:
    """A value as TOML writes it on one line.

    JSON's strings, numbers and switches are TOML's, too, but for a plain DEL and numbers that are not finite.
    """
    if isinstance(value, Mapping):
        pairs = cast("Mapping[str, object]", value).items()
        return "{" + ", ".join(f"{toml_text(key)} = {toml_text(each)}" for key, each in pairs) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(toml_text, cast("Sequence[object]", value))) + "]"
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, (date, time)):
        return value.isoformat()
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def make_profile(name: str, values: Mapping[str, object]) -> ClusterProfile:
    """A profile from values that a person gave just now.

    Raises:
        UsageError: a value cannot be right; each is named with its reason.
    """
    try:
        return ClusterProfile.model_validate({**values, "name": name})
    except ValidationError as error:
        items = error.errors(include_url=False, include_context=False)
        found = [f"{'.'.join(map(str, item['loc']))}: {item['msg'].removeprefix('Value error, ')}" for item in items]
        raise UsageError("a value cannot be right", why="\n".join(found), fix="Give another one.") from None


def with_default(text: str, name: str) -> str:
    """The text of `config.toml` with that cluster as the default one; everything else as it was."""
    line = f"default_cluster = {toml_text(name)}"
    if _DEFAULT.search(text):
        return _DEFAULT.sub(lambda _: line, text, count=1)
    return f"{line}\n{text}"


def write_private(path: Path, text: str) -> None:
    """Write a file whole, with mode 0600.

    Raises:
        ConfigError: it cannot be written.
    """
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with open(fresh, "w", encoding="utf-8", opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
            file.write(text)
        fresh.replace(path)
    except OSError as error:
        raise ConfigError(f"{path} cannot be written", why=error.strerror or str(error)) from None
