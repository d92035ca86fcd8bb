"""A job's description in a file: YAML, TOML or JSON, with the line of each key.

Values count as they are written: `1e-4` in `env` is the text `1e-4`, and `no` is no word for false where text is
wanted. So YAML is read without its rules for guessing types, and nothing in a file can make an object.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from importlib import import_module
from pathlib import Path
from typing import Any, cast

from towline.config.toml import parse_toml
from towline.models.errors import ConfigError, NotFound, SpecError
from towline.models.fields import Written

MAX_VALUES = 20_000
"""Values in one file; YAML's aliases could make more of a few lines than fits into memory."""

_TOO_DEEP = "A value holds itself, or tables lie too deep in each other."
_NULLS = frozenset({"", "~", "null", "Null", "NULL"})
_PLAIN_TAGS = frozenset(
    f"tag:yaml.org,2002:{kind}" for kind in ("str", "int", "float", "bool", "null", "seq", "map", "timestamp")
)
_TABLE = re.compile(r"\s*\[+\s*([^\[\]]+?)\s*\]+\s*(?:#.*)?")
_KEY = re.compile(r"\s*([A-Za-z0-9_.\"'-]+)\s*=")


@dataclass(frozen=True)
class JobFile:
    """What a file says of a job.

    Attributes:
        name: the file as a person would name it.
        values: its keys; every value that is no table and no list is text.
        lines: dotted key → its line, as far as it is known.
    """

    name: str
    values: Mapping[str, Any] = field(default_factory=dict[str, Any])
    lines: Mapping[str, int] = field(default_factory=dict[str, int])

    def place(self, key: str) -> str:
        """`job.yaml, line 7: ` for a dotted key in it, that of the nearest table when the key itself is not known."""
        parts = key.split(".")
        if parts[0] not in self.values:
            return ""
        for end in range(len(parts), 0, -1):
            if line := self.lines.get(".".join(parts[:end])):
                return f"{self.name}, line {line}: "
        return f"{self.name}: "


def read_job_file(path: Path) -> JobFile:
    """Read a job's description; the name's ending says how: `.toml`, `.json`, and YAML for all others.

    Raises:
        NotFound: there is no such file.
        SpecError: it cannot be read, or is no table of settings.
    """
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        raise NotFound(f"there is no file {path}", fix="Name the file that describes the job.") from None
    except OSError as error:
        raise SpecError(
            f"{path} cannot be read",
            why=error.strerror or str(error),
            fix="Name a file that you may read, or `-` for stdin.",
        ) from None
    found = parse_job_file(str(path), data)
    values = _beside(path, found.values, "code")
    network = values.get("network")
    if isinstance(network, Mapping):
        values = {**values, "network": _beside(path, cast("Mapping[str, Any]", network), "specs")}
    return replace(found, values=values)


def _beside(path: Path, values: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    """A path of this machine is meant from where the file lies."""
    given = values.get(key)
    if not isinstance(given, str) or not given or given.startswith("~"):
        return values
    return {**values, key: str(path.parent.absolute() / given)}


def parse_job_file(name: str, data: bytes) -> JobFile:
    """Read a job's description from bytes; the name's ending says how.

    Raises:
        SpecError: it is not what its name says, or no table of settings.
    """
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise SpecError(f"{name} cannot be read", why=str(error), fix="Save it as UTF-8.") from None
    reader = next((each for ending, each in _READERS.items() if name.lower().endswith(ending)), _yaml)
    return reader(name, text)


def as_written(value: object) -> object:
    """Values of TOML as a person wrote them: numbers and switches are text, which the field that gets it reads."""
    if isinstance(value, dict):
        return {key: as_written(item) for key, item in cast("dict[str, object]", value).items()}
    if isinstance(value, list):
        return [as_written(item) for item in cast("list[object]", value)]
    if isinstance(value, bool):
        return Written("true" if value else "false")
    return value if isinstance(value, str) else Written(value)


def _wrong(name: str, why: str, fix: str = "") -> SpecError:
    return SpecError(f"{name} does not describe a job", why=why, fix=fix or "Correct the file; nothing was sent.")


def _json(name: str, text: str) -> JobFile:
    """JSON is what programs write: its numbers are the model's own units."""
    try:
        values: object = json.loads(text)
    except ValueError as error:
        raise _wrong(name, f"It is not valid JSON: {error}.") from None
    except RecursionError:
        raise _wrong(name, _TOO_DEEP) from None
    if not isinstance(values, dict):
        raise _wrong(name, "It holds no object.")
    return JobFile(name, cast("dict[str, Any]", values))


def _toml(name: str, text: str) -> JobFile:
    try:
        values = parse_toml(Path(name), text.encode())
    except ConfigError as error:
        raise _wrong(name, f"It is not valid TOML: {error.why}.") from None
    except RecursionError:
        raise _wrong(name, _TOO_DEEP) from None
    return JobFile(name, cast("dict[str, Any]", as_written(values)), dict(_toml_lines(text)))


def _toml_lines(text: str) -> Iterator[tuple[str, int]]:
    """Keys with their lines, as far as they can be seen: the reader itself tells none."""
    table = ""
    for number, line in enumerate(text.splitlines(), 1):
        if found := _TABLE.fullmatch(line):
            table = found[1].replace('"', "").replace("'", "") + "."
            yield table[:-1], number
        elif found := _KEY.match(line):
            yield table + found[1].replace('"', "").replace("'", ""), number


def _yaml(name: str, text: str) -> JobFile:
    library = cast("Any", import_module("yaml"))  # imported late, and its types are not known
    try:
        node = library.compose(text, Loader=library.BaseLoader)  # BaseLoader makes nothing but text
        tree = _Tree(name)
        values: object = tree.value(node, "") if node is not None else {}
    except library.YAMLError as error:
        raise _wrong(name, f"It is not valid YAML: {error}") from None
    except RecursionError:
        raise _wrong(name, _TOO_DEEP) from None
    if not isinstance(values, dict):
        raise _wrong(name, "It holds no table of settings.", "Write lines such as `image: ubuntu` and `command: [ls]`.")
    return JobFile(name, cast("dict[str, Any]", values), tree.lines)


class _Tree:
    """YAML's nodes as plain values, with the line of each key."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.lines: dict[str, int] = {}
        self._count = 0

    def value(self, node: Any, where: str) -> object:
        self._count += 1
        if self._count > MAX_VALUES:
            raise _wrong(self.name, f"It holds more than {MAX_VALUES} values.")
        line = int(node.start_mark.line) + 1
        if str(node.tag) not in _PLAIN_TAGS:
            raise _wrong(self.name, f"Line {line}: tags such as {node.tag} mean nothing here.")
        if node.id == "mapping":
            return self._mapping(node, where)
        if node.id == "sequence":
            return [self.value(item, f"{where}.{number}") for number, item in enumerate(node.value)]
        text = str(node.value)
        if node.style is not None:
            return text
        return None if text in _NULLS else Written(text)

    def _mapping(self, node: Any, where: str) -> dict[str, object]:
        values: dict[str, object] = {}
        for key_node, value_node in node.value:
            line = int(key_node.start_mark.line) + 1
            if key_node.id != "scalar":
                raise _wrong(self.name, f"Line {line}: a key must be a word.")
            key = str(key_node.value)
            if key in values:
                raise _wrong(self.name, f"Line {line}: {key} is there twice.")
            place = f"{where}.{key}" if where else key
            self.lines.setdefault(place, line)
            values[key] = self.value(value_node, place)
        return values


_READERS: dict[str, Callable[[str, str], JobFile]] = {".json": _json, ".toml": _toml}
