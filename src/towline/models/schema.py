"""The JSON Schema of a job's description, for editors and for programs that write such files.

What the schema says of each key is its line in the model's docstring, so that there is one place for it.
"""

from __future__ import annotations

import inspect
import re
import typing
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, cast

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from towline.models.spec import JobSpec

DIALECT = "https://json-schema.org/draft/2020-12/schema"
VERSION = 1
"""Version of the description, `version` in it: a key that goes or changes its meaning makes a new one."""

TEXTS = ("command", "env", "labels", "args", "arguments")
"""Keys of lists and tables of texts: files may write numbers and switches there, which count as they are written."""

_ENTRY = re.compile(r"([a-z_]+(?:, [a-z_]+)*): (.*)")


@dataclass(frozen=True)
class Key:
    """One key of a job's description.

    Attributes:
        name: dotted; `[]` behind it for each of a list.
        meaning: what it says, for people.
        default: as a file would write it; empty when there is none.
    """

    name: str
    meaning: str
    default: str = ""


def job_schema() -> dict[str, Any]:
    """The JSON Schema of `JobSpec` as files and programs may write it."""
    schema = JobSpec.model_json_schema(mode="validation")
    for name, model in _models(JobSpec).items():
        _describe(schema if model is JobSpec else schema["$defs"][name], model)
    title = f"A job of Towline, version {VERSION}"
    return {"$schema": DIALECT, "$id": f"urn:towline:job:{VERSION}", **schema, "title": title}


def job_keys(model: type[BaseModel] = JobSpec, prefix: str = "") -> Iterator[Key]:
    """Every key of a job's description with those of its tables, in the order of their declaration."""
    meanings = _meanings(model)
    for name, field in model.model_fields.items():
        inner = list(_inner(field.annotation))
        yield Key(prefix + name, meanings.get(name, ""), _default(field))
        for table, many in inner:
            yield from job_keys(table, f"{prefix}{name}{'[]' if many else ''}.")


def _default(field: FieldInfo) -> str:
    value: object = None if field.is_required() else field.get_default(call_default_factory=True, validated_data={})
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple):
        return ",".join(str(part) for part in cast("tuple[object, ...]", value))
    return str(value) if isinstance(value, (str, int)) else ""


def _models(model: type[BaseModel]) -> dict[str, type[BaseModel]]:
    found: dict[str, type[BaseModel]] = {model.__name__: model}
    for field in model.model_fields.values():
        for table, _ in _inner(field.annotation):
            found |= _models(table)
    return found


def _inner(annotation: object, many: bool = False) -> Iterator[tuple[type[BaseModel], bool]]:
    """The models in an annotation, and whether each stands in a list."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation, many
    listed = many or typing.get_origin(annotation) is tuple
    for part in typing.get_args(annotation):
        yield from _inner(part, listed)


def _describe(schema: dict[str, Any], model: type[BaseModel]) -> None:
    schema["description"] = (inspect.getdoc(model) or "").split("\n\n")[0]
    for name, meaning in _meanings(model).items():
        if entry := schema["properties"].get(name):
            entry["description"] = meaning
            entry.pop("title", None)
            if name in TEXTS:
                _loosen(entry)


def _loosen(entry: dict[str, Any]) -> None:
    for part in (entry, *entry.get("anyOf", ())):
        for inner in ("items", "additionalProperties"):
            if part.get(inner) == {"type": "string"}:
                part[inner] = {"type": ["string", "number", "boolean"]}


def _meanings(model: type[BaseModel]) -> dict[str, str]:
    """The entries below `Attributes:` in the model's docstring."""
    meanings: dict[str, str] = {}
    names: list[str] = []
    for line in (inspect.getdoc(model) or "").partition("Attributes:\n")[2].splitlines():
        found = _ENTRY.fullmatch(line.strip())
        if found and line.startswith("    ") and not line.startswith("     "):
            names = found[1].split(", ")
            meanings |= dict.fromkeys(names, found[2])
        elif line.strip():
            meanings |= {name: f"{meanings[name]} {line.strip()}" for name in names}
    return meanings
