"""`towline version`."""

from __future__ import annotations

import platform
from importlib.metadata import version as installed_version

import click

from towline.cli.documents import print_document
from towline.cli.options import CONTEXT, examples, json_option


@click.command(epilog=examples("towline version", "towline version --json"), context_settings=CONTEXT)
@json_option
def version(as_json: bool) -> None:
    """Print the version."""
    print_version(as_json=as_json)


def print_version(*, as_json: bool = False) -> None:
    """Print Towline's version, and Python's in the JSON form."""
    found = installed_version("towline")
    if as_json:
        print_document({"version": found, "python": platform.python_version()})
    else:
        print(f"towline {found}")
