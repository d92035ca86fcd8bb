"""A job's description as the command line gives it: a file, flags over it, and the command at the end."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from towline.cli.options import named
from towline.cli.spec_options import spec_fields
from towline.models.errors import UsageError

if TYPE_CHECKING:
    from towline.engine.configuration import JobFile
    from towline.models.spec import JobSpec

F = TypeVar("F", bound=Callable[..., Any])


def file_option(function: F) -> F:
    """`--file`, a job's description; flags win over it."""
    return click.option(
        "--file",
        "-f",
        "file",
        metavar="FILE",
        callback=named,
        help="Read the job from a YAML, TOML or JSON file (- for YAML on stdin); flags win over it.",
    )(function)


def read_spec(command: Sequence[str], values: dict[str, Any], cluster: str | None) -> JobSpec:
    """The job that file, flags and command describe, over the project's defaults.

    Raises:
        UsageError: there is no command, or two.
        SpecError, NotFound: the file or a value is wrong.
    """
    given = spec_fields(values)
    if command and given.get("shell"):
        raise UsageError("both a command and --shell are given", fix="Give one of them.")
    from towline.engine.configuration import build_spec, project_defaults

    if command:
        given["command"] = tuple(command)
    name = values.get("file")
    file = None if name is None else read_file(name)
    defaults = project_defaults(cluster)
    described: set[str] = {*given, *(file.values if file else ()), *defaults}
    if not described & {"command", "shell", "roles"}:
        build_spec({**given, "command": ("true",)}, file, defaults)  # a misspelt key may be what is missing
        raise UsageError(
            "the command to run is missing",
            fix="Write it at the end, as in `towline run -- python train.py`, or use --shell TEXT.",
        )
    return build_spec(given, file, defaults)


def read_file(name: str) -> JobFile:
    """What a file says of a job; `-` is stdin.

    Raises:
        SpecError, NotFound: it is not there, or describes no job.
    """
    from towline.engine.configuration import parse_job_file, read_job_file

    return parse_job_file("stdin", sys.stdin.buffer.read()) if name == "-" else read_job_file(Path(name))
