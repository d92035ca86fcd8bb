"""Writes the parts of the documentation that the code declares: `.venv/bin/python -m harness.renew`.

A test says when a part is out of date. Parts are tables that begin with their own first line, or stand behind a mark.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

from harness import diagnosis
from towline.cli.spec_options import GROUPS
from towline.config.settings import reference, tao_reference
from towline.models import sbatch_options
from towline.models.schema import job_keys, job_schema

DOCS = Path(__file__).parent.parent / "docs"


def keys() -> str:
    """Every key of a job's description with its flag."""
    flags: dict[str, list[str]] = {}
    for option in (option for group in GROUPS.values() for option in group):
        flags.setdefault(option.field, []).append(f"`{option.flag}`")
    rows = [
        f"| `{key.name}` | {', '.join(flags.get(key.name, ()))} "
        f"| {f'`{key.default}`' if key.default else ''} | {key.meaning} |"
        for key in job_keys()
    ]
    return "\n".join(["| key | flag | default | meaning |", "|---|---|---|---|", *rows]) + "\n"


def options() -> str:
    """The further options of sbatch that may be given."""
    kinds = {
        "With a value": sbatch_options.WITH_VALUE,
        "Without a value": sbatch_options.WITHOUT_VALUE,
        "With or without": sbatch_options.EITHER,
    }
    return "".join(f"{kind}: {', '.join(f'`{name}`' for name in sorted(names))}.\n" for kind, names in kinds.items())


def refused() -> str:
    """The options of sbatch that may not be given, with the reasons."""
    reasons = {**sbatch_options.BREAKING, "container-…": sbatch_options.IN_CONTAINER}
    rows = [f"| `{name}` | {why} |" for name, why in sorted(reasons.items())]
    return "\n".join(["| option | why not |", "|---|---|", *rows]) + "\n"


def schema() -> str:
    """The JSON Schema of a job's description."""
    return json.dumps(job_schema(), indent=1) + "\n"


TABLES: dict[str, Callable[[], str]] = {"configuration.md": reference, "configuration.md#tao": tao_reference}
"""Page → a table that begins with its own first line."""

MARKED: dict[str, Callable[[], str]] = {
    "spec.md#keys": keys,
    "spec.md#options": options,
    "spec.md#refused": refused,
    "why.md#rules": diagnosis.table,
}
"""Page and mark in it → what stands behind the mark."""


def with_part(page: str, part: str, start: int) -> str:
    """The page with the block of lines that begins at `start` replaced."""
    block = re.compile(r"(?:[^\n]+\n)*").match(page, start)
    return page[:start] + part + page[block.end() if block else start :]


def renewed() -> dict[Path, str]:
    """Each file of the documentation that has such parts, as it should be."""
    pages = {
        DOCS / name: (DOCS / name).read_text(encoding="utf-8") for name in ("configuration.md", "spec.md", "why.md")
    }
    for name, part in TABLES.items():
        page = DOCS / name.partition("#")[0]
        text = part()
        pages[page] = with_part(pages[page], text, pages[page].index(text.splitlines()[0]))
    for name, part in MARKED.items():
        place, _, mark = name.partition("#")
        page = DOCS / place
        start = pages[page].index(f"<!-- {mark} -->\n\n") + len(f"<!-- {mark} -->\n\n")
        pages[page] = with_part(pages[page], part(), start)
    return {**pages, DOCS / "job.schema.json": schema(), diagnosis.COMPILED: diagnosis.compiled()}


if __name__ == "__main__":
    for path, text in renewed().items():
        path.write_text(text, encoding="utf-8")
