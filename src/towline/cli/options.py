"""Options and help that commands share."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from towline.models.values import parse_walltime

F = TypeVar("F", bound=Callable[..., Any])

CONTEXT = {"help_option_names": ["-h", "--help"], "max_content_width": 110}

SHORTEST_INTERVAL = 2.0  # seconds; the engine keeps to that, too

JSON_KEY = "towline.json"
"""Set in the root context's `meta` once `--json` was read."""


def examples(*lines: str) -> str:
    """The end of a command's help: how to use it, line by line."""
    return "\b\nExamples:\n" + "\n".join(f"  {line}" for line in lines)


def cluster_option(function: F) -> F:
    """`--cluster`, with the profile's name."""
    return click.option("--cluster", metavar="NAME", help="Cluster profile; the default one when not given.")(function)


def json_option(function: F) -> F:
    """`--json`, which also makes errors appear as JSON."""
    return click.option(
        "--json", "as_json", is_flag=True, is_eager=True, callback=_note_json, help="Print JSON (docs/json.md)."
    )(function)


def jobs_argument(function: F) -> F:
    """One or more jobs, each by id, Slurm id or name."""
    return click.argument("jobs", nargs=-1, required=True, metavar="JOB...")(function)


def named(context: click.Context, parameter: click.Parameter, value: str | None) -> str | None:
    """The name of something, which is not empty: `"$DIR"` of an unset variable must not mean all that is here."""
    if value == "":
        raise click.BadParameter("it is empty", context, parameter)
    return value


def named_path(context: click.Context, parameter: click.Parameter, value: str | None) -> Path | None:
    """The same for a file or directory of this machine."""
    name = named(context, parameter, value)
    return None if name is None else Path(name)


_DECIMAL = re.compile(r"\d+(\.\d*)?")


def seconds(_context: click.Context, _parameter: click.Parameter, value: str | None) -> float | None:
    """A time as an option's value: seconds, or for example `10m` or `2h`."""
    if value is None:
        return None
    try:
        return float(value) if _DECIMAL.fullmatch(value) else float(parse_walltime(value))
    except ValueError:
        raise click.BadParameter(f"{value!r} is not a time; write seconds, or for example 10m or 2h") from None


def interval_option(function: F) -> F:
    """`--interval`, between two looks at the queue."""
    return click.option(
        "--interval",
        metavar="TIME",
        callback=_interval,
        help="Between two looks at the queue, 2s or more; what the profile says when not given.",
    )(function)


def _interval(context: click.Context, parameter: click.Parameter, value: str | None) -> float | None:
    found = seconds(context, parameter, value)
    if found is not None and found < SHORTEST_INTERVAL:
        raise click.BadParameter(f"{value!r} is too short; {SHORTEST_INTERVAL:g} seconds are the least")
    return found


def _note_json(context: click.Context, _parameter: click.Parameter, value: bool) -> bool:
    context.meta[JSON_KEY] = value
    return value
