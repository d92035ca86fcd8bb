"""Values of a specification as JSON and TOML can hold them, or an error that names the place."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from enum import Enum
from typing import Any, cast


def normalize_specs(specs: Mapping[str, Any] | None, *, allow_none: bool = True) -> dict[str, Any]:
    """A specification with plain values: texts, numbers, lists, and tables with texts as keys.

    Paths become texts, members of enumerations their values, arrays and scalars of numpy what they hold.

    Args:
        specs: the specification; None is an empty one.
        allow_none: whether None may stand in it, which TOML cannot write.

    Raises:
        TypeError: a value or a key is of another kind; its place is in the error.
        ValueError: a number is not finite, or a value holds itself.
    """
    if specs is None:
        return {}
    if not isinstance(specs, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise TypeError(f"specs must be a table, not {type(specs).__name__}")
    return normalize_data(specs, root="specs", allow_none=allow_none)


def normalize_data(value: Any, *, root: str, allow_none: bool = True) -> Any:
    """The same for any value; `root` is what it is called in errors."""
    return _plain(value, root, allow_none, ())


def _plain(value: Any, path: str, allow_none: bool, above: tuple[int, ...]) -> Any:
    if isinstance(value, Enum):
        return _plain(value.value, path, allow_none, above)
    if isinstance(value, os.PathLike):
        text = os.fspath(cast("os.PathLike[Any]", value))
        if not isinstance(text, str):
            raise TypeError(f"{path}: a path must be text")
        return text
    if value is None:
        if not allow_none:
            raise TypeError(f"{path}: TOML cannot hold a value that is None")
        return None
    if isinstance(value, (bool, str)):
        return bool(value) if isinstance(value, bool) else str(value)
    if isinstance(value, (int, float)) and not hasattr(value, "dtype"):
        return _number(value, path)
    if id(value) in above:
        raise ValueError(f"{path}: the value holds itself")
    return _inside(value, path, allow_none, (*above, id(value)))


def _number(value: float, path: str) -> int | float:
    if not math.isfinite(value):
        raise ValueError(f"{path}: {value} is not a finite number")
    return int(value) if isinstance(value, int) else float(value)


def _inside(value: Any, path: str, allow_none: bool, above: tuple[int, ...]) -> Any:
    if isinstance(value, Mapping):
        return _table(cast("Mapping[Any, Any]", value), path, allow_none, above)
    if isinstance(value, (list, tuple)):
        items = enumerate(cast("list[Any]", value))
        return [_plain(each, f"{path}[{index}]", allow_none, above) for index, each in items]
    if hasattr(value, "dtype") and hasattr(value, "tolist"):  # of numpy, which need not be installed
        found = value.tolist()
        if type(found) is not type(value):
            return _plain(found, path, allow_none, above)
    raise TypeError(f"{path}: {type(value).__name__} is no value that a specification can hold")


def _table(value: Mapping[Any, Any], path: str, allow_none: bool, above: tuple[int, ...]) -> dict[str, Any]:
    table: dict[str, Any] = {}
    for key, each in value.items():
        name = key.value if isinstance(key, Enum) else key
        if not isinstance(name, str):
            raise TypeError(f"{path}: keys must be texts, and {name!r} is none")
        if name in table:
            raise ValueError(f"{path}: the key {name!r} stands there twice")
        table[str(name)] = _plain(each, f"{path}[{name!r}]", allow_none, above)
    return table
