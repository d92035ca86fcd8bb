"""What is wrong with a job's description, in the words of its keys."""

from __future__ import annotations

import difflib
import re
import types
import typing
from collections.abc import Callable, Iterator
from typing import Any

from pydantic import BaseModel, ValidationError

from towline.models.errors import SpecError

NEAR = 3
"""How many near names an unknown one gets at most."""

_WORDS = {
    "tuple_type": "a list is wanted here, such as [one, two]",
    "dict_type": "a table of names and values is wanted here, such as {NAME: value}",
    "model_type": "a table of settings is wanted here",
    "string_type": "text is wanted here; put it in quotation marks",
    "missing": "it is missing",
}
"""What pydantic says in terms of Python, by its types of findings."""

Place = Callable[[str], str]
"""Dotted key → where it stands, for the beginning of a sentence; empty when that is not known."""


def nowhere(_: str) -> str:
    """The place of keys that stand in no file."""
    return ""


def spec_error(error: ValidationError, model: type[BaseModel], place: Place = nowhere) -> SpecError:
    """The validation's findings as one error in the user's words."""
    items = [dict(item) for item in error.errors(include_url=False, include_context=False)]
    return SpecError(
        "the job cannot be run as it is described",
        why="\n".join(place(key_of(item)) + finding(item, model) for item in items),
        fix="Correct the value and run the command again; nothing was sent to the cluster.",
    )


def key_of(item: dict[str, Any]) -> str:
    """The dotted key that a finding of pydantic is about; empty for the whole."""
    return ".".join(str(part) for part in item["loc"] if part != "[key]")


def finding(item: dict[str, Any], model: type[BaseModel]) -> str:
    """One finding of pydantic as a sentence that begins with the key it is about."""
    where = key_of(item)
    if item["type"] == "extra_forbidden":
        return f"{where}: there is no such setting{near(where, model)}"
    reason = _WORDS.get(item["type"]) or str(item["msg"]).removeprefix("Value error, ")
    return f"{where}: {reason}" if where else reason


def near(where: str, model: type[BaseModel]) -> str:
    """A question with the keys that may have been meant; nothing when none is near.

    A key of another table counts, too: people write `gpus` where `resources.gpus` belongs. In an entry of a list
    the keys of such entries are meant.
    """
    prefix, where, model = entry(where, model)
    known = list(keys(model))
    last = where.rpartition(".")[2]
    by_last: dict[str, list[str]] = {}
    for name in known:
        by_last.setdefault(name.rpartition(".")[2], []).append(name)
    found = by_last.get(last) or difflib.get_close_matches(where, known, n=NEAR)
    if not found:
        found = [name for word in difflib.get_close_matches(last, by_last, n=NEAR) for name in by_last[word]]
    return f"; did you mean {' or '.join(prefix + name for name in found[:NEAR])}?" if found else ""


def entry(where: str, model: type[BaseModel]) -> tuple[str, str, type[BaseModel]]:
    """Where `roles.0.image` lies: in the list's entry `roles.0.`; with the rest of the key and the entry's model."""
    prefix, rest = "", where
    while found := re.match(r"([^.0-9][^.]*)\.[0-9]+\.(?=.)", rest):
        field = model.model_fields.get(found[1])
        listed = typing.get_args(field.annotation) if field else ()
        table = next((table for part in listed for table in tables(part)), None)
        if table is None:
            break
        prefix, rest, model = prefix + found[0], rest[found.end() :], table
    return prefix, rest, model


def keys(model: type[BaseModel], prefix: str = "") -> Iterator[str]:
    """Every key of a model with those of the tables in it, dotted."""
    for name, field in model.model_fields.items():
        yield prefix + name
        for table in tables(field.annotation):
            yield from keys(table, f"{prefix}{name}.")


def tables(annotation: object) -> Iterator[type[BaseModel]]:
    """The models in an annotation such as `Mail | None`; lists and mappings of models are not looked into."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    elif typing.get_origin(annotation) is typing.Annotated:
        yield from tables(typing.get_args(annotation)[0])
    elif typing.get_origin(annotation) in (typing.Union, types.UnionType):
        for part in typing.get_args(annotation):
            yield from tables(part)
