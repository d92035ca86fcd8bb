"""The settings of a profile as a table: what files accept, what the environment overrides, what the docs list."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from towline.config.profile import ClusterProfile

_NOT_SETTINGS = frozenset({"name"})


@dataclass(frozen=True)
class Setting:
    """One setting.

    Attributes:
        name: its key in a file.
        env: the environment variable that overrides it.
        help: one sentence.
        default: as a file would write it; empty when there is none.
        required: whether a profile must have it.
        tao: the variables that give it in the preset `tao`; the first that is set counts.
    """

    name: str
    env: str
    help: str
    default: str
    required: bool
    tao: tuple[str, ...] = ()


def settings() -> tuple[Setting, ...]:
    """Every setting in the order of its declaration."""
    return tuple(
        Setting(
            name,
            f"TOWLINE_{name.upper()}",
            field.description or "",
            _shown(field.default),
            field.is_required(),
            _tao_names(field),
        )
        for name, field in ClusterProfile.model_fields.items()
        if name not in _NOT_SETTINGS
    )


def overrides(env: Mapping[str, str]) -> dict[str, str]:
    """The settings that the environment gives, by name; an empty variable gives none."""
    return {setting.name: env[setting.env] for setting in settings() if env.get(setting.env)}


def near(name: str) -> str:
    """`; did you mean …?` for a key that is not a setting, or nothing when none is like it."""
    found = difflib.get_close_matches(name, [setting.name for setting in settings()], n=3)
    return f"; did you mean {' or '.join(found)}?" if found else ""


def reference() -> str:
    """The settings as a Markdown table, for `docs/configuration.md`."""
    rows = [f"| `{s.name}` | `{s.env}` | {_default_cell(s)} | {s.help} |" for s in settings()]
    return "\n".join(["| setting | environment | default | meaning |", "|---|---|---|---|", *rows]) + "\n"


def tao_reference() -> str:
    """The variables of the preset `tao` that give settings, as a Markdown table."""
    rows = [f"| {', else '.join(f'`{name}`' for name in s.tao)} | `{s.name}` |" for s in settings() if s.tao]
    return "\n".join(["| variable | setting |", "|---|---|", *rows]) + "\n"


def _default_cell(setting: Setting) -> str:
    return "required" if setting.required else f"`{setting.default}`" if setting.default else ""


def _tao_names(field: FieldInfo) -> tuple[str, ...]:
    extra = cast("dict[str, list[str]]", field.json_schema_extra or {})
    return tuple(extra.get("tao", ()))


def _shown(default: object) -> str:
    if default is PydanticUndefined or default is None or default == ():
        return ""
    return f"{default:g}" if isinstance(default, float) else str(default)
