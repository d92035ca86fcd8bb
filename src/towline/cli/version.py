"""`towline version`."""

from __future__ import annotations

import platform

import click

from towline import __version__
from towline.cli.documents import print_document
from towline.cli.options import CONTEXT, examples, json_option


@click.command(epilog=examples("towline version", "towline version --json"), context_settings=CONTEXT)
@json_option
def version(as_json: bool) -> None:
    """Print the version."""
    print_version(as_json=as_json)


def print_version(*, as_json: bool = False) -> None:
    """Print Towline's version, and Python's in the JSON form."""
    if as_json:
        print_document({"version": __version__, "python": platform.python_version()})
    else:
        print(f"towline {__version__}")
