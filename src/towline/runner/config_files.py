"""Configuration files in the formats that trainers read, written without libraries that an image may lack."""

import json
import re
from typing import Any, Callable, Dict, Iterator, List

from towline.runner.keys import items, table

_PLAIN_KEY = re.compile(r"[A-Za-z0-9_-]+")
_YAML_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
_YAML_WORDS = frozenset({"y", "n", "yes", "no", "true", "false", "on", "off", "null"})
"""What YAML 1.1 takes for something else than a text."""
_LARGEST = 1 << 63
"""Integers of TOML have 64 bits (toml.io, Integer)."""


def text_of(values: Dict[str, Any], kind: str) -> str:
    """A table as a file.

    Args:
        values: tables, lists, texts, finite numbers, truth values and None.
        kind: `json`, `yaml` or `toml`.

    Raises:
        ValueError: that format cannot hold a value; its place is in the error.
    """
    return _WRITERS[kind](values)


def _json(values: Dict[str, Any]) -> str:
    return json.dumps(values, indent=2, allow_nan=False) + "\n"


# --- YAML ---


def _yaml(values: Dict[str, Any]) -> str:
    return "".join(_block(values, "")) or "{}\n"


def _block(value: Any, indent: str) -> Iterator[str]:
    """The lines of a table or a list that is not empty; readers of YAML 1.1 and 1.2 read the same."""
    for name, each in (table(value) or {}).items():
        head = "{}{}:".format(indent, name if _is_plain(name) else _quoted(name))
        yield from _entry(head, each, indent + "  ")
    for each in items(value) or []:
        yield from _entry(indent + "-", each, indent + "  ")


def _is_plain(name: str) -> bool:
    return bool(_YAML_KEY.fullmatch(name)) and name.lower() not in _YAML_WORDS


def _entry(head: str, value: Any, indent: str) -> Iterator[str]:
    if isinstance(value, (dict, list)) and value:
        yield head + "\n"
        yield from _block(value, indent)
    else:
        yield "{} {}\n".format(head, _yaml_scalar(value))


def _yaml_scalar(value: Any) -> str:
    if isinstance(value, float):
        return _yaml_float(value)
    return _quoted(value) if isinstance(value, str) else json.dumps(value)


def _yaml_float(value: float) -> str:
    """YAML 1.1 reads `1e-05` as a text: its floats have a dot."""
    digits, mark, power = repr(value).partition("e")
    if mark and "." not in digits:
        digits += ".0"
    return digits + (mark + (power if power[0] in "+-" else "+" + power) if mark else "")


def _quoted(text: str) -> str:
    """In double quotes; what YAML and TOML do not let stand there is escaped the way that both read."""
    escaped = json.dumps(text, ensure_ascii=False)
    return re.sub("[\x7f-\x9f\u2028\u2029\ud800-\udfff\ufeff\ufffe\uffff]", _escaped, escaped)


def _escaped(found: "re.Match[str]") -> str:
    return "\\u{:04x}".format(ord(found.group()))


# --- TOML ---


def _toml(values: Dict[str, Any]) -> str:
    return "".join(_section(values, [])).lstrip("\n")


def _section(values: Dict[str, Any], names: List[str]) -> Iterator[str]:
    """A table: first its own values, then the tables in it, which end it."""
    inner: Dict[str, Any] = {name: each for name, each in values.items() if table(each) is not None or _is_tables(each)}
    for name, each in values.items():
        if name not in inner:
            place = [*names, _toml_key(name)]
            yield "{} = {}\n".format(place[-1], _toml_value(each, ".".join(place)))
    for name, each in inner.items():
        place = [*names, _toml_key(name)]
        for row in items(each) or [each]:
            yield ("\n[[{}]]\n" if isinstance(each, list) else "\n[{}]\n").format(".".join(place))
            yield from _section(row, place)


def _is_tables(value: Any) -> bool:
    row = items(value)
    return bool(row) and all(isinstance(each, dict) for each in row or [])


def _toml_key(name: str) -> str:
    return name if _PLAIN_KEY.fullmatch(name) else _toml_text(name)


def _toml_text(text: str) -> str:
    if re.search("[\ud800-\udfff]", text):
        raise ValueError("{!r} has characters that no file of TOML can hold".format(text))
    return _quoted(text)


def _toml_value(value: Any, place: str) -> str:
    row, inner = items(value), table(value)
    if row is not None:
        row = _alike(row)
        return "[{}]".format(", ".join(_toml_value(each, "{}[{}]".format(place, n)) for n, each in enumerate(row)))
    if inner is not None:
        pairs = ((_toml_key(name), each) for name, each in inner.items())
        return "{{{}}}".format(
            ", ".join("{} = {}".format(name, _toml_value(each, "{}.{}".format(place, name))) for name, each in pairs)
        )
    if isinstance(value, str):
        return _toml_text(value)
    if value is None:
        raise ValueError("{}: TOML cannot hold a value that is None".format(place))
    if isinstance(value, int) and not -_LARGEST <= value < _LARGEST:
        raise ValueError("{}: TOML cannot hold a number of more than 64 bits".format(place))
    return _yaml_float(value) if isinstance(value, float) else json.dumps(value)


def _alike(row: List[Any]) -> List[Any]:
    """Numbers of one kind, where no value changes by that: readers of TOML before 1.0 refuse `[0, 0.5]`."""
    if not any(isinstance(each, float) for each in row) or not all(type(each) in (int, float) for each in row):
        return row
    whole = [float(each) if abs(each) <= 1 << 53 else each for each in row]
    return whole if all(isinstance(each, float) for each in whole) else row


_WRITERS: Dict[str, Callable[[Dict[str, Any]], str]] = {"json": _json, "yaml": _yaml, "toml": _toml}
