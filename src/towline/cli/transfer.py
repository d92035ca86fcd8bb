"""`towline push` and `towline pull`: files between this machine and the cluster's shared file system."""

from __future__ import annotations

import dataclasses
import time
from pathlib import Path

import click

from towline.cli.documents import print_document, report_as_dict
from towline.cli.doors import open_engine
from towline.cli.loop import run
from towline.cli.options import CONTEXT, cluster_option, examples, json_option, named, named_path
from towline.cli.output import StatusLine, duration, size
from towline.cli.results import progress_printer, pull_summary
from towline.cli.terminal import clean


@click.command(
    epilog=examples(
        "towline push ./imagenet", "towline push ./imagenet /lustre/me/imagenet", "towline push labels.json sets/coco/"
    ),
    context_settings=CONTEXT,
)
@click.argument("local", metavar="LOCAL", callback=named_path)
@click.argument("remote", metavar="[REMOTE]", required=False, callback=named)
@cluster_option
@json_option
def push(*, local: Path, remote: str | None, cluster: str | None, as_json: bool) -> None:
    """Bring files to the cluster's shared file system.

    LOCAL is a file or a directory; what `.gitignore` and `.towlineignore` files in it name stays here. REMOTE is the
    directory that will hold what LOCAL holds, or the file: an absolute path, or a name below <root>/data, which is
    LOCAL's own when not given. What is there with the same size and time is not sent again, and after a cut or
    Ctrl-C the same command goes on where it was.
    """
    run(_push(local, remote or "", cluster, as_json=as_json))


async def _push(local: Path, remote: str, name: str | None, *, as_json: bool) -> None:
    news, start = StatusLine(quiet=as_json), time.monotonic()
    async with open_engine(name) as cluster:
        done = await cluster.push(local, remote, progress=progress_printer(news, "pushing"))
    if as_json:
        print_document({"pushed": dataclasses.asdict(done)})
        return
    files = "1 file" if done.files == 1 else f"{done.files} files"
    kept = f", {done.kept} of them there before" if done.kept else ""
    news.say(f"{files}, {size(done.bytes)}, after {duration(time.monotonic() - start)}{kept}")
    for path in done.left_out:
        news.say(f"left here: {clean(path)} (it leads out of the directory, or is no file)")
    print(done.place)


@click.command(
    epilog=examples("towline pull imagenet ./imagenet", "towline pull /lustre/me/runs/7/best.pt"),
    context_settings=CONTEXT,
)
@click.argument("remote", metavar="REMOTE", callback=named)
@click.argument("local", metavar="[LOCAL]", required=False, callback=named_path)
@cluster_option
@json_option
def pull(*, remote: str, local: Path | None, cluster: str | None, as_json: bool) -> None:
    """Bring files of the cluster's shared file system home.

    REMOTE is a file or a directory: an absolute path, or a name below <root>/data. LOCAL is what it becomes here;
    its own name in the working directory when not given. What is here with the same size and time is not sent
    again, and after a cut or Ctrl-C the same command goes on where it was. Results of jobs come with
    `towline results --pull`.
    """
    run(_pull(remote, local, cluster, as_json=as_json))


async def _pull(remote: str, local: Path | None, name: str | None, *, as_json: bool) -> None:
    news, start = StatusLine(quiet=as_json), time.monotonic()
    async with open_engine(name) as cluster:
        report = await cluster.pull(remote, local, progress=progress_printer(news, "pulling"))
    pull_summary(report, news, time.monotonic() - start)
    if as_json:
        print_document({"pulled": report_as_dict(report)})
