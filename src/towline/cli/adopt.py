"""`towline adopt`: the user's jobs on the cluster, for a store that does not know them."""

from __future__ import annotations

import sys

import click

from towline.cli.documents import job_as_dict, print_document
from towline.cli.doors import open_cluster
from towline.cli.loop import run as run_loop
from towline.cli.options import CONTEXT, cluster_option, examples, json_option
from towline.cli.wording import adopted
from towline.engine.adopting import Adopted
from towline.engine.redaction import redacted


@click.command(epilog=examples("towline adopt", "towline adopt --json"), context_settings=CONTEXT)
@cluster_option
@json_option
def adopt(*, cluster: str | None, as_json: bool) -> None:
    """Find your jobs on the cluster and take them over, with their history.

    The directories of jobs below the profile's root are the truth: on a new machine, or after a lost state directory,
    every job that is there is known again, is watched, and is started again where that is due.
    """
    found = run_loop(_adopt(cluster))
    for note in found.notes:
        click.echo(redacted(f"towline: {note}"), err=True)
    if as_json:
        print_document({"jobs": [job_as_dict(record) for record in found.jobs], "notes": list(found.notes)})
        return
    for record in found.jobs:
        sys.stdout.write(redacted(f"{adopted(record)}\n"))
    if not found.jobs:
        click.echo("there is no job on the cluster that is not known here", err=True)


async def _adopt(name: str | None) -> Adopted:
    async with open_cluster(name) as cluster:
        return await cluster.adopt_all()
