"""`towline notify`: who is told of jobs, and whether that works."""

from __future__ import annotations

import dataclasses

import click

from towline.cli.documents import print_document
from towline.cli.options import CONTEXT, cluster_option, examples, json_option
from towline.cli.output import table
from towline.models.errors import RemoteFault


@click.command(epilog=examples("towline notify", "towline notify --test"), context_settings=CONTEXT)
@click.option("--test", is_flag=True, help="Send a message to each channel now.")
@cluster_option
@json_option
def notify(*, test: bool, cluster: str | None, as_json: bool) -> None:
    """Show who is told when jobs end, start again or are stuck, what waits to be told, and why.

    The channels are the profile's settings `notify` and `notify_on`. They are told by a process of its own, whichever
    command or service notices what happened. With --test the exit status is 71 when one does not take the message.
    """
    from towline.engine.notifying.channels import show

    found = show(cluster, test=test)
    if as_json:
        print_document({"channels": [dataclasses.asdict(each) for each in found]})
    else:
        rows = [(each.channel, ",".join(each.occasions), str(each.waiting), each.tried or each.error) for each in found]
        print(table(("CHANNEL", "TOLD", "WAITING", "LAST"), rows), end="")
    if failed := [each for each in found if each.tried not in ("", "sent")]:
        raise RemoteFault(
            f"{len(failed)} of {len(found)} channels did not take the message",
            why="\n".join(f"{each.channel}: {each.tried}" for each in failed),
            fix="Compare the URL with apprise's documentation of that service.",
        )
