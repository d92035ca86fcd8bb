"""What a fault is: a name, what it takes, how it comes and how it goes."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from towline.lab.errors import LabError
from towline.lab.layout import Host, Layout

Values = tuple[str, ...]
"""A fault's arguments, checked, one for each that it takes."""
Act = Callable[[Layout, Values], None]


@dataclass(frozen=True)
class Argument:
    """One thing that a fault takes.

    Attributes:
        name: as the usage shows it.
        parse: gives the checked value; raises `LabError` with what would do.
        default: the value when nobody gives one; None when one must be given.
    """

    name: str
    parse: Callable[[str], str]
    default: str | None = None


@dataclass(frozen=True)
class Fault:
    """Something that goes wrong on command.

    Attributes:
        name: how `towline lab fault` calls it.
        help: what it does, in one line.
        on: makes it so; may be asked for again while it is so.
        off: undoes it; no error when there is nothing to undo, or the host it was on has lost power.
        arguments: what it takes. A fault whose first argument is a host can be on for several hosts at a time.
        ends_with_host: whether a host that loses power comes back without it.
    """

    name: str
    help: str
    on: Act
    off: Act
    arguments: tuple[Argument, ...] = ()
    ends_with_host: bool = False

    @property
    def usage(self) -> str:
        """Name and arguments as one would type them after `towline lab fault`."""
        shown = [name if one.default is None else f"[{name}]" for one in self.arguments for name in [one.name]]
        return " ".join([self.name, "on", *shown])

    @property
    def is_per_host(self) -> bool:
        """Whether its first argument says where."""
        return bool(self.arguments) and isinstance(self.arguments[0], HostArgument)

    def parsed(self, words: Sequence[str]) -> Values:
        """The arguments, checked and complete.

        Raises:
            LabError: one is missing, one is too many, or one cannot be right.
        """
        missing = [one.name for one in self.arguments[len(words) :] if one.default is None]
        if missing or len(words) > len(self.arguments):
            what = f"needs {', '.join(missing)}" if missing else f"takes {len(self.arguments)} arguments at most"
            raise LabError(f"The fault {self.name} {what}.", fix=f"It is `towline lab fault {self.usage}`.")
        given = [*words, *(one.default or "" for one in self.arguments[len(words) :])]
        return tuple(one.parse(word) for one, word in zip(self.arguments, given, strict=True))

    def is_same(self, one: Values, other: Values) -> bool:
        """Whether two sets of arguments mean the same place, so that the fault is there once."""
        return not self.is_per_host or one[0] == other[0]


class HostArgument(Argument):
    """A host by its name."""


def host_of(name: str, hosts: Sequence[Host]) -> HostArgument:
    """An argument that is the name of one of these hosts."""
    names = [host.name for host in hosts]
    return HostArgument(name, lambda word: _one_of(word.removesuffix(".lab"), names, name))


def number(name: str, low: int, high: int, default: int | None = None) -> Argument:
    """An argument that is a whole number in a range, both ends in it."""

    def parse(word: str) -> str:
        if re.fullmatch(r"-?[0-9]{1,9}", word) is None or not low <= int(word) <= high:
            raise LabError(f"{name} is {word!r}, not a whole number from {low} to {high}.")
        return str(int(word))

    return Argument(name, parse, None if default is None else str(default))


def _one_of(word: str, known: Sequence[str], name: str) -> str:
    if word not in known:
        raise LabError(f"{name} is {word!r}.", fix=f"There are: {', '.join(known)}.")
    return word
