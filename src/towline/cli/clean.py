"""`towline rm` and `towline gc`: room on the cluster."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from towline.cli.documents import print_document
from towline.cli.doors import open_engine
from towline.cli.loop import run
from towline.cli.options import CONTEXT, cluster_option, examples, jobs_argument, json_option, seconds
from towline.cli.output import StatusLine, duration, size, table
from towline.models.job import JobState
from towline.models.removal import KINDS, USUAL

if TYPE_CHECKING:
    from towline.engine.staging.cleaning import Item, Wish


@click.command(epilog=examples("towline rm k3v9x2m4q", "towline rm tune-7 41"), context_settings=CONTEXT)
@jobs_argument
@cluster_option
@json_option
def rm(jobs: tuple[str, ...], cluster: str | None, as_json: bool) -> None:
    """Remove jobs that have ended: their directories on the cluster, with logs and results, and what is known here.

    A job that has not ended is refused; cancel it first. Bring home what you want to keep with
    `towline results --pull`.
    """
    run(_rm(jobs, cluster, as_json=as_json))


async def _rm(references: Sequence[str], name: str | None, *, as_json: bool) -> None:
    async with open_engine(name) as cluster:
        done = await cluster.remove(await cluster.find(references))
    _report(done.gone, done.used, as_json=as_json)


@click.command(
    epilog=examples(
        "towline gc",
        "towline gc --older-than 14d --yes",
        "towline gc --state failed --larger-than 1G",
        "towline gc --only logs",
        "towline gc --only data --older-than 90d",
    ),
    context_settings=CONTEXT,
)
@click.option(
    "--older-than", metavar="TIME", default="30d", callback=seconds, help="Ended so long ago; 30d by default."
)
@click.option("--larger-than", metavar="SIZE", default="", help="At least so large, for example 500M or 2G.")
@click.option(
    "--state",
    "states",
    type=click.Choice(sorted(state.value for state in JobState if state.ended)),
    multiple=True,
    help="Only jobs that ended so.",
)
@click.option(
    "--only", type=click.Choice(KINDS), multiple=True, help="Only such things; all but data and logs when not given."
)
@click.option("--yes", is_flag=True, help="Remove it; without this it is only shown.")
@cluster_option
@json_option
def gc(
    *,
    older_than: float,
    larger_than: str,
    states: tuple[str, ...],
    only: tuple[str, ...],
    yes: bool,
    cluster: str | None,
    as_json: bool,
) -> None:
    """Show what could be removed on the cluster, and with --yes remove it.

    That is jobs that have ended, with logs and results; snapshots of code that no job has; data that was staged;
    records of imports; and what calls that were killed left half-made. Only when named with `--only`: `data` that you
    pushed, and the `logs` of jobs alone. What Slurm still has, or a job needs, is never removed.
    """
    from towline.engine.staging.cleaning import Wish
    from towline.models.values import parse_memory

    try:
        kib = parse_memory(larger_than) * 1024 if larger_than else 0
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--larger-than") from None
    wish = Wish(int(older_than), kib, frozenset(states), frozenset(only or USUAL))
    run(_gc(wish, cluster, yes=yes, as_json=as_json))


async def _gc(wish: Wish, name: str | None, *, yes: bool, as_json: bool) -> None:
    async with open_engine(name) as cluster:
        found = await cluster.removable(wish)
        if not yes:
            _show(found, as_json=as_json)
            return
        logs = "jobs" not in wish.kinds
        done = await cluster.clean([f"logs/{each.name}" if logs and each.is_job else each.path for each in found])
    _report(done.gone, done.used, as_json=as_json)


def _show(found: Sequence[Item], *, as_json: bool) -> None:
    if as_json:
        print_document({"removable": [dataclasses.asdict(each) for each in found]})
        return
    rows = [
        (
            *(each.path, each.state or "-", duration(each.age)),
            *(size(each.kib * 1024), "-" if each.inodes is None else str(each.inodes)),
        )
        for each in found
    ]
    if rows:
        print(table(("WHAT", "STATE", "AGE", "SIZE", "INODES"), rows), end="")
    total, inodes = sum(each.kib for each in found) * 1024, sum(each.inodes or 0 for each in found)
    StatusLine().say(f"{len(found)} could go: {size(total)} and {inodes} inodes; --yes removes them")


def _report(gone: Sequence[str], used: Sequence[str], *, as_json: bool) -> None:
    if as_json:
        print_document({"removed": list(gone), "used": list(used)})
        return
    news = StatusLine()
    for path in gone:
        print(path)
    for path in used:
        news.say(f"{path} is in use after all; it stays")
    news.say(f"{len(gone)} removed")
