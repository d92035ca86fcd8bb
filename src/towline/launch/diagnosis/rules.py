"""The compiled rules as values."""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass
from importlib import resources
from typing import Literal, TypeVar, get_args

from towline.models.diagnosis import FAULT_CLASSES, FaultClass, Retry

Where = Literal["log", "last", "quote", "slurm", "end"]
"""What a rule looks at: the lines of logs, a log's last line, where a text that only tells of things begins (`covers`)
or ends, or facts."""
Blame = Literal["yes", "no", "alone", "uneven"]
Strength = Literal["first", "own", "general", "covers", "place", "follows", "with"]
"""Which of several rules knows a line: `first` before `own`, `general` where no other does. A harmless line that
`covers` takes the next line of a general rule with it; one that says the `place` of ranks is kept for that, and
one that `follows` an error shows, as such a place does, that its program did nothing more; a rule
`with:NAME` counts only when the rule of that name has a line, too."""


COLUMNS = ("name", "kind", "where", "retry", "blame", "strength", "pattern", "means", "advice")
"""The columns of `rules.tsv`."""
FOR_JOBS = COLUMNS.index("means")
"""How many of them a job needs."""
FIXED_TEXTS = "#"
"""Begins the last line of `rules.tsv`: texts with `|` between, one of which each line has that a rule of logs knows."""

_WHERE: tuple[Where, ...] = get_args(Where)
_BLAME: tuple[Blame, ...] = get_args(Blame)
_STRENGTH: tuple[Strength, ...] = get_args(Strength)
_RETRY: tuple[Retry, ...] = get_args(Retry)
_Kind = Literal["harmless"] | FaultClass
_KINDS: tuple[_Kind, ...] = ("harmless", *FAULT_CLASSES)
_Word = TypeVar("_Word", bound=str)


@dataclass(frozen=True)
class Rule:
    """One rule, see `towline.launch.diagnosis`.

    Attributes:
        order: its place, from 1; the lowest of those that know a line is the cause.
        name: a word that stays the same.
        kind: whose fault it proves; None for a line that is harmless.
        where: what it looks at.
        retry: whether another attempt makes sense.
        blame: whether the node that the line is about is at fault; `alone` when others of the job have no such line,
            `uneven` when it is known which; else, of several, it is the job's own.
        strength: which of several rules knows a line.
        needs: name of the rule that must have a line, too; empty for most.
        pattern: what the line looks like.
        means: what happened, for a person.
        advice: what to do.
    """

    order: int
    name: str
    kind: FaultClass | None
    where: Where
    retry: Retry
    blame: Blame
    strength: Strength
    needs: str
    pattern: str
    means: str
    advice: str

    @functools.cached_property
    def regex(self) -> re.Pattern[str]:
        """The pattern, compiled."""
        return re.compile(self.pattern)


@functools.cache
def rules() -> tuple[Rule, ...]:
    """Every rule, causes first."""
    return parse_rules(_packaged("rules.tsv"))


@functools.cache
def by_name() -> dict[str, Rule]:
    """Every rule by its name."""
    return {rule.name: rule for rule in rules()}


def job_rules() -> bytes:
    """The rules as a job takes them along, without the words for people."""
    lines = _packaged("rules.tsv").splitlines()
    return "".join("\t".join(line.split("\t")[:FOR_JOBS]) + "\n" for line in lines).encode()


def all_rules() -> bytes:
    """The compiled rules as they are."""
    return _packaged("rules.tsv").encode()


def search_script() -> bytes:
    """The search, see its head."""
    return _packaged("search.sh").encode()


def parse_rules(text: str) -> tuple[Rule, ...]:
    """Read compiled rules.

    Raises:
        ValueError: a line is none.
    """
    lines = [line for line in text.splitlines() if not line.startswith(FIXED_TEXTS)]
    return tuple(_rule(number, line) for number, line in enumerate(lines, 1))


def fixed_texts() -> tuple[str, ...]:
    """Each line has one of them that a rule for logs knows, see `search.sh`."""
    return tuple(_packaged("rules.tsv").rpartition(f"\n{FIXED_TEXTS}\t")[2].rstrip("\n").split("|"))


def _rule(number: int, line: str) -> Rule:
    name, word, where, retry, blame, strength, pattern, means, advice = line.split("\t")
    try:
        kind: _Kind = _word(word, _KINDS)
        return Rule(
            order=number,
            name=name,
            kind=None if kind == "harmless" else kind,
            where=_word(where, _WHERE),
            retry=_word(retry, _RETRY),
            blame=_word(blame, _BLAME),
            strength=_word(strength.partition(":")[0], _STRENGTH),
            needs=strength.partition(":")[2],
            pattern=pattern,
            means=means,
            advice=advice,
        )
    except ValueError as error:
        raise ValueError(f"rule {name}: {error}") from None


def _word(text: str, allowed: tuple[_Word, ...]) -> _Word:
    for word in allowed:
        if word == text:
            return word
    raise ValueError(f"{text!r} is none of {', '.join(allowed)}")


def _packaged(name: str) -> str:
    return (resources.files("towline.launch.diagnosis") / name).read_text(encoding="utf-8")
