"""The rules of diagnosis: from their TOML files to the compiled ones, and to the table in docs/why.md."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from harness.fixed_text import fewest, fixed_texts
from towline.launch.diagnosis.rules import COLUMNS, FIXED_TEXTS, Rule, parse_rules
from towline.models.diagnosis import FAULT_CLASSES

ROOM = Path(__file__).parent.parent / "src/towline/launch/diagnosis"
COMPILED = ROOM / "rules.tsv"

_KEYS = {"name", "class", "where", "pattern", "retry", "blame", "strength", "means", "do", "examples", "near"}

# What stands in quotes is a text about a fault and not the fault: a help text, a configuration, a line of code.
_MENTIONS = {
    **dict.fromkeys(set(FAULT_CLASSES) - {"user", "memory"}, '[^"]'),
    "ambiguous": "[^\"']",
}
_BLAME = {True: "yes", False: "no", "alone": "alone", "uneven": "uneven"}
_DEFAULTS: dict[str, Any] = {
    "where": "log",
    "retry": "no",
    "blame": False,
    "strength": "own",
    "means": "",
    "do": "",
    "near": [],
}


@dataclass(frozen=True)
class Source:
    """A rule as it is written down, with what tests it.

    Attributes:
        rule: the rule.
        examples: lines that it knows, and that no other rule is asked about first.
        near: lines that look like it and that it must not know.
    """

    rule: Rule
    examples: tuple[str, ...]
    near: tuple[str, ...]


def sources() -> tuple[Source, ...]:
    """Every rule with its examples, causes first.

    Raises:
        ValueError: a file says something that no rule has.
    """
    tables = _tables()
    return tuple(
        Source(rule, tuple(table["examples"]), tuple(table["near"]))
        for rule, table in zip(parse_rules("".join(map(_line, tables))), tables, strict=True)
    )


def compiled() -> str:
    """What `rules.tsv` should be."""
    tables = _tables()
    looked_for = [table["pattern"] for table in tables if _is_looked_for(table)]
    texts = fewest(frozenset(text for pattern in looked_for for text in fixed_texts(pattern)))
    return "".join(map(_line, tables)) + f"{FIXED_TEXTS}\t{'|'.join(sorted(texts))}\n"


def _is_looked_for(table: dict[str, Any]) -> bool:
    """Whether `search.sh` looks for it: a harmless line is of no interest unless it says something of others."""
    telling = table["class"] != "harmless" or table["strength"] in ("covers", "place", "follows")
    return table["where"] == "quote" or (table["where"] == "log" and telling)


def table() -> str:
    """Every rule for docs/why.md, those of harmless lines left out."""
    rows = [
        f"| `{rule.name}` | {rule.kind} | {_again(rule)} | {rule.means} | {rule.advice} |"
        for rule in (source.rule for source in sources())
        if rule.kind
    ]
    return "\n".join(["| rule | class | again? | what happened | what to do |", "|---|---|---|---|---|", *rows]) + "\n"


def _again(rule: Rule) -> str:
    words = {"yes": "yes", "no": "no", "resume": "if it resumes"}
    where = {
        "no": "",
        "yes": ", on another node",
        "alone": "; on another node if one alone had it",
        "uneven": ", on another node; no if all have it",
    }
    return words[rule.retry] + where[rule.blame]


def _tables() -> list[dict[str, Any]]:
    loads: Callable[[str], dict[str, Any]] = import_module("tomllib" if sys.version_info >= (3, 11) else "tomli").loads
    files = {path.name: loads(path.read_text(encoding="utf-8")) for path in sorted((ROOM / "rules").glob("*.toml"))}
    parts = {name: text for each in files.values() for name, text in each.get("parts", {}).items()}
    return [_whole(name, table, parts) for name, each in files.items() for table in each["rule"]]


def _whole(file: str, table: dict[str, Any], parts: dict[str, str]) -> dict[str, Any]:
    """A rule with what it leaves out, and with the parts that its pattern names."""
    whole = dict(_DEFAULTS)
    whole.update(table)
    if wrong := set(whole) ^ _KEYS:
        raise ValueError(f"{file}, rule {table.get('name')}: {', '.join(sorted(wrong))} is missing or unknown")
    for name, part in parts.items():
        whole["pattern"] = whole["pattern"].replace("{" + name + "}", part)
    if whole["where"] == "log" and whole["class"] in _MENTIONS:
        whole["pattern"] = f"^{_MENTIONS[whole['class']]}*({whole['pattern']})"
    return whole


def _line(table: dict[str, Any]) -> str:
    values = {**table, "kind": table["class"], "advice": table["do"], "blame": _BLAME[table["blame"]]}
    return "\t".join(str(values[column]) for column in COLUMNS) + "\n"
