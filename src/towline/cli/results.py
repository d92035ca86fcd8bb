"""`towline results`: what a job made, listed or brought home."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path

import click

from towline.cli.documents import file_as_dict, print_document, report_as_dict
from towline.cli.doors import Job, open_cluster
from towline.cli.loop import run as run_loop
from towline.cli.options import CONTEXT, cluster_option, examples, json_option
from towline.cli.output import StatusLine, duration, moment, size, table
from towline.cli.terminal import clean
from towline.engine.events import Progress, PullReport

_PLAIN_NEWS_EVERY = 10.0  # seconds between two lines of progress where no terminal is


@click.command(
    epilog=examples("towline results k3v9x2m4q", "towline results train --pull ./results", "towline results 41 --json"),
    context_settings=CONTEXT,
)
@click.argument("job")
@click.option(
    "--pull", metavar="DEST", type=click.Path(path_type=Path), help="Bring the files home into this directory."
)
@cluster_option
@json_option
def results(job: str, pull: Path | None, cluster: str | None, as_json: bool) -> None:
    """List a job's results, or bring them home.

    The job is given by id, Slurm id or name. Its results are what it left in the directory that it knows as
    TOWLINE_RESULTS_DIR. The destination is made; files of the same names in it are replaced.
    """
    run_loop(_pull(job, pull.absolute(), cluster, as_json=as_json) if pull else _list(job, cluster, as_json=as_json))


async def _list(reference: str, name: str | None, *, as_json: bool) -> None:
    async with open_cluster(name) as cluster:
        (job,) = await cluster.find([reference])
        files = await job.results()
    if as_json:
        print_document({"job_id": job.id, "files": [file_as_dict(file) for file in files]})
    elif files:
        rows = [(size(file.size), moment(file.modified), file.path) for file in files]
        print(table(("SIZE", "MODIFIED", "PATH"), rows), end="")
    else:
        print(f"towline: job {job.id} has no results", file=sys.stderr)


async def _pull(reference: str, dest: Path, name: str | None, *, as_json: bool) -> None:
    async with open_cluster(name) as cluster:
        (job,) = await cluster.find([reference])
        report = await _pulled(job, dest, quiet=as_json)
    if as_json:
        print_document({"job_id": job.id, "pulled": report_as_dict(report)})


async def _pulled(job: Job, dest: Path, *, quiet: bool) -> PullReport:
    news, start = StatusLine(quiet=quiet), time.monotonic()
    report = await job.pull_results(dest, progress=progress_printer(news))
    took = duration(time.monotonic() - start)
    files = "1 file" if report.files == 1 else f"{report.files} files"
    news.say(f"{files}, {size(report.bytes)}, in {report.destination} after {took}")
    for refused in report.refused:
        news.say(f"left on the cluster: {clean(refused)} (it leads out of the results, or is no file)")
    return report


def progress_printer(news: StatusLine, *, clock: Callable[[], float] = time.monotonic) -> Callable[[Progress], None]:
    """What shows a transfer's progress: always on a terminal, every few seconds elsewhere."""
    last = clock()

    def show(progress: Progress) -> None:
        nonlocal last
        now = clock()
        if not sys.stderr.isatty() and now - last < _PLAIN_NEWS_EVERY:
            return
        last = now
        news.update(progress_text(progress))

    return show


def progress_text(progress: Progress) -> str:
    """How far a transfer is: share, files, bytes."""
    share = f"{100 * progress.bytes_done // progress.bytes_total}%, " if progress.bytes_total else ""
    return (
        f"pulling results: {share}{progress.files_done} of {progress.files_total} files, "
        f"{size(progress.bytes_done)} of {size(progress.bytes_total)}"
    )
