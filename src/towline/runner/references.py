"""Selective inputs: of a directory elsewhere, only the files that an annotation names."""

import csv
import json
import os
from typing import Any, Iterable, Iterator, List, Mapping, NamedTuple, Optional, Set

from towline.runner.keys import items, table
from towline.stager.problems import Problem
from towline.stager.source import Found

FORMATS = ("json", "jsonl", "csv", "parquet")
_SHOWN = 5


class Selection(NamedTuple):
    """Which files of a directory are wanted.

    Attributes:
        annotation: key of the input that is the annotation.
        form: `json` (a list of tables, or one), `jsonl`, `csv` or `parquet`.
        keys: names of the fields, or columns, with paths below the directory.
    """

    annotation: str
    form: str
    keys: List[str]


def selection_of(settings: Mapping[str, Any]) -> Optional[Selection]:
    """What an input's settings say of it: `{"selective": {"annotation": KEY, "format": "json", "keys": ["video"]}}`.

    Raises:
        Problem: they cannot be understood.
    """
    value = settings.get("selective")
    if value is None:
        return None
    facts = table(value) or {}
    annotation, form, keys = facts.get("annotation"), facts.get("format", "json"), facts.get("keys", ["video"])
    if not isinstance(annotation, str) or not annotation:
        raise Problem("names", "`selective` needs the key of an annotation: {!r}".format(facts))
    if form not in FORMATS:
        raise Problem("names", "`selective` knows the formats {}, not {!r}".format(", ".join(FORMATS), form))
    names = items([keys] if isinstance(keys, str) else keys)
    if not names or not all(isinstance(each, str) for each in names):
        raise Problem("names", "`keys` of `selective` has to be a list of names, not {!r}".format(keys))
    return Selection(annotation, str(form), [str(each) for each in names])


def references(path: str, selection: Selection) -> List[str]:
    """The paths that an annotation names, sorted, each once.

    Raises:
        Problem: it cannot be read, or names something outside of the directory.
    """
    found: Set[str] = set()
    try:
        for row in _rows(path, selection):
            for key in selection.keys:
                found.update(_texts(row.get(key), path, key))
    except (OSError, ValueError, csv.Error) as error:
        raise Problem(
            "damaged", "the annotation {} cannot be read as {}: {}".format(path, selection.form, error)
        ) from None
    if not found:
        raise Problem("names", "the annotation {} has nothing in {}".format(path, ", ".join(selection.keys)))
    return sorted({_inside(each, path) for each in found})


def _rows(path: str, selection: Selection) -> Iterator[Mapping[str, Any]]:
    if selection.form == "parquet":
        yield from _parquet(path, selection.keys)
        return
    with open(path, encoding="utf-8", newline="" if selection.form == "csv" else None) as file:
        if selection.form == "csv":
            yield from csv.DictReader(file)
        elif selection.form == "jsonl":
            yield from _tables((json.loads(line) for line in file if line.strip()), path)
        else:
            whole: Any = json.load(file)
            several = items(whole)
            yield from _tables([whole] if several is None else several, path)


def _tables(values: Iterable[Any], path: str) -> Iterator[Mapping[str, Any]]:
    for value in values:
        row = table(value)
        if row is None:
            raise Problem("damaged", "the annotation {} has {!r} where a table should be".format(path, value))
        yield row


def _parquet(path: str, keys: List[str]) -> Iterator[Mapping[str, Any]]:
    """Columns of a Parquet file, with the library that the image has for it."""
    import importlib

    try:
        parquet = importlib.import_module("pyarrow.parquet")
    except ImportError:
        words = "the annotation {} is a Parquet file, and the image's Python has no pyarrow to read it with"
        raise Problem("tool", words.format(path)) from None
    wanted = [key for key in keys if key in parquet.read_schema(path).names]
    yield from parquet.read_table(path, columns=wanted).to_pylist()


def _texts(value: Any, path: str, key: str) -> Iterator[str]:
    """The paths of a field: one, or a list of them."""
    several = items(value)
    for each in [value] if several is None else several:
        if isinstance(each, str):
            if each:
                yield each
        elif each is not None:
            raise Problem("damaged", "the annotation {} has {!r} in {!r}, and no path".format(path, each, key))


def _inside(reference: str, path: str) -> str:
    """A reference as the path of a file below the directory."""
    parts = [part for part in reference.split("/") if part not in ("", ".")]
    if reference.startswith("/") or ".." in parts or "://" in reference or "\0" in reference or not parts:
        words = "the annotation {} names {!r}, which does not lie below the directory that it is of"
        raise Problem("names", words.format(path, reference))
    return "/".join(parts)


def chosen(found: Found, wanted: List[str], uri: str) -> Found:
    """What a source has, as far as it is wanted.

    Raises:
        Problem: something wanted is not there.
    """
    if found.kind == "file":
        raise Problem("names", "{} is one file; a selective input has to be a directory".format(uri))
    names = set(wanted)
    entries = [each for each in found.entries if each.path in names]
    missing = sorted(names - {each.path for each in entries})
    if missing:
        shown = ", ".join(missing[:_SHOWN]) + (" …" if len(missing) > _SHOWN else "")
        raise Problem(
            "not-found", "{} lacks {} of {} files that are wanted: {}".format(uri, len(missing), len(names), shown)
        )
    return found._replace(entries=entries)


def are_there(folder: str, wanted: List[str]) -> bool:
    """Whether a directory has all of them."""
    return all(os.path.isfile(os.path.join(folder, each)) for each in wanted)
