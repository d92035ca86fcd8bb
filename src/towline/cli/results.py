"""`towline results`: what a job made, listed or brought home."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import click

from towline.cli.documents import file_as_dict, print_document, report_as_dict
from towline.cli.doors import Job, open_cluster
from towline.cli.loop import run as run_loop
from towline.cli.options import CONTEXT, cluster_option, examples, jobs_argument, json_option, named_path
from towline.cli.output import StatusLine, duration, moment, size, table
from towline.cli.terminal import clean
from towline.cli.wording import no_answer
from towline.engine.events import NOTHING_LEFT, NoAnswer, Progress, PullReport, ResultFile
from towline.models.errors import UsageError

_NEWS_EVERY, _PLAIN_NEWS_EVERY = 0.1, 10.0
"""Seconds between two looks at the progress on a terminal, and between two lines of it elsewhere."""
_NAMED = 20
"""Files that are named one by one."""


@click.command(
    epilog=examples(
        "towline results k3v9x2m4q",
        "towline results train --pull ./results",
        "towline results train --pull ./results --only '*.pt' --only logs/ --follow",
        "towline results 41 42 --json",
    ),
    context_settings=CONTEXT,
)
@jobs_argument
@click.option("--pull", metavar="DEST", callback=named_path, help="Bring the files home into this directory.")
@click.option("--only", metavar="GLOB", multiple=True, help="Bring only these, for example '*.pt' or checkpoints/.")
@click.option("--follow", "-f", is_flag=True, help="Go on until the job has ended; files come once they are whole.")
@cluster_option
@json_option
def results(
    *,
    jobs: tuple[str, ...],
    pull: Path | None,
    only: tuple[str, ...],
    follow: bool,
    cluster: str | None,
    as_json: bool,
) -> None:
    """List what jobs have made, or bring it home.

    A job is given by id, Slurm id or name. Its results are what it left in the directory that it knows as
    TOWLINE_RESULTS_DIR. The destination is made; files of the same names in it are replaced, and those that are there
    with the same size and time are not sent again. After a cut or Ctrl-C the same command goes on where it was. Several
    jobs get a directory each in it, named by their ids.
    """
    if pull is None and (only or follow):
        raise UsageError("--only and --follow are for bringing files home", fix="Say where to with --pull DEST.")
    if pull is None:
        run_loop(_list(jobs, cluster, as_json=as_json))
    elif follow:
        run_loop(_keep_pulling(jobs, pull.absolute(), only, cluster, as_json=as_json))
    else:
        run_loop(_pull(jobs, pull.absolute(), only, cluster, as_json=as_json))


async def _list(references: Sequence[str], name: str | None, *, as_json: bool) -> None:
    async with open_cluster(name) as cluster:
        found = [(job, await job.results(), await job.delivery()) for job in await cluster.find(references)]
    if as_json:
        listed = [
            {"job_id": job.reference, "files": [file_as_dict(file) for file in files], "outputs": outputs}
            for job, files, outputs in found
        ]
        print_document({"results": listed})
        return
    for job, files, outputs in found:
        if len(found) > 1:
            print(f"job {job.reference} ({clean(job.record.name)}):")
        _print_files(job.reference, files)
        if outputs:
            StatusLine().say(clean(outputs))


def _print_files(job_id: str, files: Sequence[ResultFile]) -> None:
    if files:
        rows = [_row(file) for file in files]
        print(table(("SIZE", "MODIFIED", "PATH"), rows), end="")
    else:
        print(f"towline: job {job_id} has no results: it left nothing in $TOWLINE_RESULTS_DIR", file=sys.stderr)


def _row(file: ResultFile) -> tuple[str, str, str]:
    if file.readable:
        return size(file.size), moment(file.modified), file.path
    return "-", moment(file.modified), f"{file.path}/ (cannot be read)"


async def _pull(references: Sequence[str], dest: Path, only: Sequence[str], name: str | None, *, as_json: bool) -> None:
    async with open_cluster(name) as cluster:
        jobs = await cluster.find(references)
        places = _places(jobs, dest)
        reports = {job.reference: await _pulled(job, places[job.reference], only, quiet=as_json) for job in jobs}
    if as_json:
        pulled = [{"job_id": job_id, "pulled": report_as_dict(report)} for job_id, report in reports.items()]
        print_document({"results": pulled})


def _places(jobs: Sequence[Job], dest: Path) -> dict[str, Path]:
    return {job.reference: dest / job.reference if len(jobs) > 1 else dest for job in jobs}


async def _keep_pulling(
    references: Sequence[str], dest: Path, only: Sequence[str], name: str | None, *, as_json: bool
) -> None:
    async with open_cluster(name) as cluster:
        jobs = await cluster.find(references)
        places = _places(jobs, dest)
        await asyncio.gather(*(_kept_up(job, places[job.reference], only, as_json=as_json) for job in jobs))


async def _kept_up(job: Job, dest: Path, only: Sequence[str], *, as_json: bool) -> None:
    news, start, is_new = StatusLine(quiet=as_json), time.monotonic(), _is_new(dest)
    async for report in job.keep_pulling(dest, only=only, progress=progress_printer(news)):
        if isinstance(report, NoAnswer):
            news.say(no_answer(report.reason))
        elif as_json:
            print_document({"results": [{"job_id": job.reference, "pulled": report_as_dict(report)}]})
        else:
            pull_summary(report, news, time.monotonic() - start)
        if is_new:
            _leave_out(dest, news)


async def _pulled(job: Job, dest: Path, only: Sequence[str], *, quiet: bool) -> PullReport:
    news, start, is_new = StatusLine(quiet=quiet), time.monotonic(), _is_new(dest)
    report = await job.pull_results(dest, only=only, progress=progress_printer(news))
    pull_summary(report, news, time.monotonic() - start)
    if is_new:
        _leave_out(dest, news)
    return report


def _is_new(dest: Path) -> bool:
    return not dest.exists()


def _leave_out(dest: Path, news: StatusLine) -> None:
    """Results that came into a project would go back to the cluster with the code of its next job."""
    from towline.engine.staging.trees import leave_out

    if dest.is_dir() and leave_out(dest):
        news.say(f"`--code` leaves {dest} out ({dest}/.towlineignore says so)")


def pull_summary(report: PullReport, news: StatusLine, seconds: float) -> None:
    """Say what a pull brought, and what it did not."""
    news.say(_summary(report, seconds))
    for refused in report.refused:
        news.say(f"left on the cluster: {clean(refused)} (it leads out of the directory, or is no file)")
    for path in report.unfinished[:_NAMED]:
        news.say(f"left on the cluster: {clean(path)} (the job is still writing it; pull again later, or --follow)")
    if len(report.unfinished) > _NAMED:
        news.say(f"left on the cluster: {len(report.unfinished) - _NAMED} more that the job is still writing")
    for grown in report.grown:
        news.say(f"still being written: {clean(grown)} (here is what it was at the beginning; pull again later)")


def _summary(report: PullReport, seconds: float) -> str:
    if report.way == NOTHING_LEFT:
        return NOTHING_LEFT
    files = "1 file" if report.files == 1 else f"{report.files} files"
    kept = f", {report.kept} of them here before" if report.kept else ""
    return f"{files}, {size(report.bytes)}, in {report.destination} after {duration(seconds)}{kept}"


def progress_printer(
    news: StatusLine, doing: str = "pulling results", *, clock: Callable[[], float] = time.monotonic
) -> Callable[[Progress], None]:
    """What shows a transfer's progress and its rate: always on a terminal, every few seconds elsewhere."""
    begin = last = clock()
    first: int | None = None

    def show(progress: Progress) -> None:
        nonlocal first, begin, last
        now = clock()
        if first is None:  # what is here already was not brought at any rate
            first, begin = progress.bytes_done, now
        if now - last < (_NEWS_EVERY if sys.stderr.isatty() else _PLAIN_NEWS_EVERY):
            return
        last = now
        rate = (progress.bytes_done - first) / (now - begin) if now > begin else 0.0
        news.update(progress_text(progress, rate, doing))

    return show


def progress_text(progress: Progress, rate: float = 0.0, doing: str = "pulling results") -> str:
    """How far a transfer is: share, files, bytes, bytes per second."""
    share = f"{100 * progress.bytes_done // progress.bytes_total}%, " if progress.bytes_total else ""
    return (
        f"{doing}: {share}{progress.files_done} of {progress.files_total} files, "
        f"{size(progress.bytes_done)} of {size(progress.bytes_total)}{f', {size(int(rate))}/s' if rate else ''}"
    )
