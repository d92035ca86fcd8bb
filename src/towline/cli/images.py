"""`towline images`: registries' images as files on the cluster."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from towline.cli.documents import print_document
from towline.cli.guard import Ended
from towline.cli.loop import run
from towline.cli.options import cluster_option, examples, json_option, seconds
from towline.cli.output import StatusLine, duration, size, table
from towline.models.errors import RemoteFault
from towline.models.values import parse_memory

if TYPE_CHECKING:
    from towline.engine.images.importing import ImportNews
    from towline.engine.images.keeping import Removal, Shelved


@click.group(epilog=examples("towline images ls", "towline images pull nvcr.io/nvidia/pytorch:24.07-py3"))
def images() -> None:
    """List the files that were made of registries' images, make one, or take some away."""


@images.command(epilog=examples("towline images ls", "towline images ls --json"))
@cluster_option
@json_option
def ls(*, cluster: str | None, as_json: bool) -> None:
    """List the cache: size, age, last use, and the jobs that use an image now."""
    from towline.engine.images import keeping

    found = run(keeping.listed(cluster))
    if as_json:
        print_document({"images": [_as_dict(each) for each in found]})
    elif found:
        print(table(("SIZE", "AGE", "LAST USE", "USED BY", "IMAGE", "NAME"), [_row(each) for each in found]), end="")
    else:
        StatusLine().say("there are no images in the cache")


@images.command(epilog=examples("towline images pull nvcr.io/nvidia/pytorch:24.07-py3"))
@click.argument("image", metavar="IMAGE")
@click.option("--partition", metavar="NAME", multiple=True, help="Partition whose nodes it is for.")
@cluster_option
@json_option
def pull(*, image: str, partition: tuple[str, ...], cluster: str | None, as_json: bool) -> None:
    """Have an image made a file by a job, and wait for it; its path is printed."""
    from towline.engine.images import keeping

    news = StatusLine(quiet=as_json)
    try:
        made = run(keeping.pulled(cluster, image, partition, lambda each: news.update(*_progress(each))))
    finally:
        news.clear()
    if as_json:
        print_document(
            {"image": {"image": made.reference, "path": made.path, "arch": made.arch, "digest": made.digest}}
        )
    else:
        print(made.path)


@images.command(epilog=examples("towline images rm nvcr.io+nvidia+pytorch+24.07-py3+0a1b2c3d4e+x86_64+5f6a7b8c9d0e"))
@click.argument("names", metavar="NAME...", nargs=-1, required=True)
@cluster_option
@json_option
def rm(*, names: tuple[str, ...], cluster: str | None, as_json: bool) -> None:
    """Take images away by the names that `ls` shows; one that a job uses stays, and the exit status is 71 then."""
    from towline.engine.images import keeping

    _tell_removals(run(keeping.removed(cluster, names)), as_json=as_json)


@images.command(epilog=examples("towline images prune --dry-run", "towline images prune --unused 30d --keep 500G"))
@click.option("--unused", metavar="TIME", callback=seconds, help="Not used for so long; 30d when nothing is said.")
@click.option("--keep", metavar="SIZE", help="Until no more than this is left, what was not used longest first.")
@click.option("--dry-run", is_flag=True, help="Show what would go; change nothing.")
@cluster_option
@json_option
def prune(*, unused: float | None, keep: str | None, dry_run: bool, cluster: str | None, as_json: bool) -> None:
    """Take images away that were not used for long, or that are too much; never one that a job uses."""
    from towline.engine.images import keeping

    most = None if keep is None else _bytes(keep)
    idle = int(unused) if unused is not None else 30 * 86400 if most is None else None
    chosen, removals = run(keeping.pruned(cluster, idle=idle, keep=most, dry_run=dry_run))
    if dry_run:
        if as_json:
            print_document({"images": [_as_dict(each) for each in chosen]})
        for each in () if as_json else chosen:
            print(f"would remove {each.image.name} ({size(each.image.size)}, not used for {duration(each.idle)})")
        return
    _tell_removals(removals, as_json=as_json)


@images.command(epilog=examples("towline images verify", "towline images verify --json"))
@click.argument("names", metavar="[NAME]...", nargs=-1)
@cluster_option
@json_option
def verify(*, names: tuple[str, ...], cluster: str | None, as_json: bool) -> None:
    """Read images whole and compare them with what was recorded; the exit status is 71 when one is not as it was."""
    from towline.engine.images import keeping

    found = run(keeping.listed(cluster, names, read=True))
    bad = [each for each in found if not each.whole or each.intact is False]
    if as_json:
        print_document({"images": [_as_dict(each) for each in found]})
    for each in () if as_json else found:
        print(f"{_verdict(each):<10} {each.image.name}")
    if bad:
        raise Ended(RemoteFault.exit_status)


def _bytes(text: str) -> int:
    try:
        return parse_memory(text) << 20
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--keep") from None


def _verdict(each: Shelved) -> str:
    if not each.whole:
        return "cut off"
    return {True: "intact", False: "changed", None: "no record"}[each.intact]


def _progress(news: ImportNews) -> tuple[str, ...]:
    found = news.found
    if found.stage == "":
        job = "" if news.slurm_id == "here" else f" as Slurm job {news.slurm_id}"
        return (f"the import of {news.image.reference} waits{job}",)
    rate = f", {size(found.rate)}/s" if found.rate else ""
    made = f", {size(found.bytes)}{rate}" if found.bytes else ""
    return (f"importing {news.image.reference}: {found.doing or found.stage}{made}, {duration(news.seconds)}",)


def _row(each: Shelved) -> tuple[str, ...]:
    ago = f"{duration(each.idle)} ago"
    return size(each.image.size), duration(each.age), ago, ",".join(each.jobs) or "-", each.reference, each.image.name


def _as_dict(each: Shelved) -> dict[str, Any]:
    return {
        "name": each.image.name,
        "image": each.reference,
        "arch": each.image.arch,
        "digest": each.image.notes.get("digest", ""),
        "size": each.image.size,
        "age": each.age,
        "idle": each.idle,
        "jobs": list(each.jobs),
        "whole": each.whole,
        "intact": each.intact,
    }


def _tell_removals(removals: Sequence[Removal], *, as_json: bool) -> None:
    if as_json:
        print_document({"removed": [{"name": e.name, "outcome": e.outcome, "size": e.size} for e in removals]})
    words = {"removed": "removed", "used": "in use by", "missing": "not there", "unsure": "kept: Slurm did not answer"}
    for each in () if as_json else removals:
        print(f"{words.get(each.outcome, each.outcome)} {each.detail} {each.name}".replace("  ", " "))
    if any(each.outcome != "removed" for each in removals):
        raise Ended(RemoteFault.exit_status)
