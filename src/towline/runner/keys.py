"""Keys of nested values in one text: `data.train[0].images`; names with dots are quoted, as `loss."a.b"`."""

import re
from typing import Any, Dict, Iterator, List, Optional, Tuple, Union, cast

Step = Union[str, int]
_PART = re.compile(r'(?:"((?:[^"\\]|\\.)*)"|([^\[\]."]+))((?:\[\d+\])*)(\.|$)')


def table(value: Any) -> Optional[Dict[str, Any]]:
    """The value, if it is a table."""
    return cast("Dict[str, Any]", value) if isinstance(value, dict) else None


def items(value: Any) -> Optional[List[Any]]:
    """The value, if it is a list."""
    return cast("List[Any]", value) if isinstance(value, list) else None


def steps_of(key: str) -> List[Step]:
    """A key's parts: names of tables, numbers of lists.

    Raises:
        ValueError: it is no key.
    """
    steps: List[Step] = []
    place, more = 0, True
    while more:
        found = _PART.match(key, place)
        if not found:
            raise ValueError("{!r} is no key; one looks like data.train[0].images".format(key))
        quoted, plain, numbers, dot = found.groups()
        steps.append(plain if quoted is None else re.sub(r"\\(.)", r"\1", quoted))
        steps.extend(int(number) for number in re.findall(r"\d+", numbers))
        place, more = found.end(), dot == "."
    return steps


def key_of(name: str, above: str = "") -> str:
    """The key of a name in the table that stands at `above`; a name with dots or brackets is quoted."""
    if not name or re.search(r'[\[\]."]', name):
        name = '"{}"'.format(re.sub(r'(["\\])', r"\\\1", name))
    return "{}.{}".format(above, name) if above else name


def get(values: Any, key: str) -> Any:
    """What stands at a key; None where nothing does.

    Raises:
        ValueError: it is no key.
    """
    for step in steps_of(key):
        if isinstance(step, str):
            values = (table(values) or {}).get(step)
        else:
            values = dict(enumerate(items(values) or [])).get(step)
    return values


def put(values: Dict[str, Any], key: str, value: Any) -> None:
    """Have a value stand at a key; the tables and lists that it needs are made.

    Raises:
        ValueError: it is no key, or something else stands on the way there.
    """
    steps = steps_of(key)
    here: Any = values
    for number, step in enumerate(steps[:-1]):
        here = _place(here, step, key, [] if isinstance(steps[number + 1], int) else {})
    _place(here, steps[-1], key, None)
    here[steps[-1]] = value


def _place(values: Any, step: Step, key: str, fresh: Any) -> Any:
    """What is at a step, made when it is not there."""
    if isinstance(step, str):
        above = table(values)
        if above is None:
            raise ValueError("{}: there is no table for {!r}; {!r} stands there".format(key, step, values))
        if above.get(step) is None:
            above[step] = fresh
        return above[step]
    row = items(values)
    if row is None:
        raise ValueError("{}: there is no list for [{}]; {!r} stands there".format(key, step, values))
    row.extend([None] * (step + 1 - len(row)))
    if row[step] is None:
        row[step] = fresh
    return row[step]


def leaves(values: Any, above: str = "") -> Iterator[Tuple[str, Any]]:
    """Every value that is no table and no list, with its key, in order."""
    inner = table(values)
    rows = items(values)
    if inner is not None:
        for name, each in inner.items():
            yield from leaves(each, key_of(name, above))
    elif rows is not None:
        for number, each in enumerate(rows):
            yield from leaves(each, "{}[{}]".format(above, number))
    else:
        yield above, values
