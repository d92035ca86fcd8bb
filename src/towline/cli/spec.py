"""`towline spec`: descriptions of jobs in files."""

from __future__ import annotations

import json
import sys

import click

from towline.cli.documents import print_document
from towline.cli.options import examples, json_option, named
from towline.cli.spec_input import read_file


@click.group(epilog=examples("towline spec check job.yaml", "towline spec schema > job.schema.json"))
def spec() -> None:
    """Check descriptions of jobs, and print their schema."""


@spec.command(epilog=examples("towline spec check job.yaml", "towline spec check job.toml --json"))
@click.argument("file", metavar="FILE", callback=named)
@json_option
def check(file: str, *, as_json: bool) -> None:
    """Check a file that describes a job, without asking any cluster.

    What only a cluster can tell is checked by `towline plan -f FILE`.
    """
    from towline.engine.configuration import build_spec

    found = build_spec({}, read_file(file))
    if as_json:
        print_document({"spec": found.model_dump(mode="json")})
    else:
        click.echo(f"{file} describes job {found.name}: {found.command_line}")


@spec.command(epilog=examples("towline spec schema > job.schema.json"))
def schema() -> None:
    """Print the JSON Schema of a job's description (also in docs/job.schema.json)."""
    from towline.engine.configuration import job_schema

    sys.stdout.write(json.dumps(job_schema(), indent=1) + "\n")
