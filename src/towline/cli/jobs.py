"""`towline ps`, `cancel` and `wait`: looking at jobs and deciding about them."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Callable, Sequence

import click

from towline.cli import wording
from towline.cli.documents import exit_as_dict, exit_status, job_as_dict, print_document
from towline.cli.doors import open_cluster
from towline.cli.guard import Ended
from towline.cli.loop import run as run_loop
from towline.cli.options import CONTEXT, cluster_option, examples, interval_option, jobs_argument, json_option, seconds
from towline.cli.output import duration, paint, table, width_of
from towline.cli.terminal import clean
from towline.engine.redaction import redacted
from towline.engine.watching.verdict import blocked_for_ever
from towline.models.job import JobRecord

# --- ps ---


@click.command(epilog=examples("towline ps", "towline ps -a --json", "towline ps -w"), context_settings=CONTEXT)
@click.option("--all", "-a", "everything", is_flag=True, help="Also jobs that have ended.")
@click.option("--watch", "-w", is_flag=True, help="Show the list anew whenever something has changed.")
@interval_option
@cluster_option
@json_option
def ps(*, everything: bool, watch: bool, interval: float | None, cluster: str | None, as_json: bool) -> None:
    """List jobs that have not ended, or all of them.

    The cluster is asked once for all jobs; what it answers is shown. With --watch it is asked again and again, by one
    process for all; that ends when no job is left, or with Ctrl-C.
    """
    show = _print_json if as_json else _LiveTable(everything=everything)
    if watch:
        run_loop(_watch(cluster, show, everything=everything, interval=interval))
    else:
        show(run_loop(_list(cluster, everything=everything)))


async def _list(name: str | None, *, everything: bool) -> tuple[JobRecord, ...]:
    async with open_cluster(name) as cluster:
        return await cluster.jobs(everything=everything)


Show = Callable[[tuple[JobRecord, ...]], None]


async def _watch(name: str | None, show: Show, *, everything: bool, interval: float | None) -> None:
    async with open_cluster(name) as cluster:
        async for records in cluster.watch_jobs(everything=everything, interval=interval):
            show(records)


def _print_json(records: tuple[JobRecord, ...]) -> None:
    print_document({"jobs": [job_as_dict(record) for record in records]})


class _LiveTable:
    """The table of jobs; on a terminal a new one takes the place of the one before."""

    def __init__(self, *, everything: bool) -> None:
        self._everything = everything
        self._lines = 0

    def __call__(self, records: tuple[JobRecord, ...]) -> None:
        text = redacted(table(_PS_HEADER, [_ps_row(each) for each in records], width=width_of(sys.stdout)))
        if self._lines and sys.stdout.isatty():
            sys.stdout.write(f"\x1b[{self._lines}F\x1b[J")
        elif self._lines and records:
            sys.stdout.write("\n")
        self._lines = len(records) + 1 if records else 0
        if records:
            sys.stdout.write(text)
        else:
            nothing = "No jobs." if self._everything else "No jobs that have not ended; `towline ps -a` lists all."
            print(nothing, file=sys.stdout if sys.stdout.isatty() else sys.stderr)
        sys.stdout.flush()


_PS_HEADER = ("ID", "NAME", "STATE", "SLURM", "NODES", "AGE", "EXIT", "NOTE")


def _ps_row(record: JobRecord) -> tuple[str, ...]:
    last = record.last
    return (
        record.reference,
        record.name,
        record.state.value,
        last.slurm_id or "-",
        last.nodes or "-",
        duration(time.time() - record.created),
        "-" if last.exit_code is None else str(last.exit_code),
        _note(record),
    )


def _note(record: JobRecord) -> str:
    if blocked_for_ever(record):
        return f"BLOCKED: {record.note}"
    return "; ".join(filter(None, (record.note, "" if record.state.ended else wording.reported(record))))


# --- cancel ---


@click.command(epilog=examples("towline cancel k3v9x2m4q", "towline cancel train eval"), context_settings=CONTEXT)
@jobs_argument
@cluster_option
@json_option
def cancel(jobs: tuple[str, ...], cluster: str | None, as_json: bool) -> None:
    """Cancel jobs for good, each given by id, Slurm id or name.

    When one of them is not known, none is cancelled. A job that has ended stays as it is.
    """
    records = run_loop(_cancel(jobs, cluster))
    if as_json:
        print_document({"jobs": [job_as_dict(record) for record in records]})
        return
    for record in records:
        print(paint(clean(wording.verdict(record)), wording.colour_of(record), sys.stdout))


async def _cancel(references: Sequence[str], name: str | None) -> list[JobRecord]:
    async with open_cluster(name) as cluster:
        return [await job.cancel() for job in await cluster.find(references)]


# --- wait ---


@click.command(
    epilog=examples("towline wait k3v9x2m4q && echo trained", "towline wait train eval --timeout 2h"),
    context_settings=CONTEXT,
)
@jobs_argument
@click.option("--timeout", metavar="TIME", callback=seconds, help="Patience in seconds, or for example 10m or 2h.")
@interval_option
@cluster_option
@json_option
def wait(
    jobs: tuple[str, ...], timeout: float | None, interval: float | None, cluster: str | None, as_json: bool
) -> None:
    """Wait until jobs have ended, each given by id, Slurm id or name.

    The exit status is 0 when all succeeded, else that of the first one given that did not: its own code, or 72
    when it has none. It is 75 when the time ran out; the jobs go on then.
    """
    records = run_loop(_wait(jobs, cluster, timeout, interval))
    failed = next((record for record in records if exit_status(record)), None)
    if as_json:
        ending = exit_as_dict(failed) if failed else exit_as_dict(records[0])
        print_document({"jobs": [job_as_dict(record) for record in records], "exit": ending})
    else:
        for record in records:
            headline, *why = wording.ending(record)
            print("\n".join([paint(clean(headline), wording.colour_of(record), sys.stdout), *map(clean, why)]))
    if failed:
        raise Ended(exit_status(failed))


async def _wait(
    references: Sequence[str], name: str | None, timeout: float | None, interval: float | None
) -> list[JobRecord]:
    async with open_cluster(name) as cluster:
        found = await cluster.find(references)
        waits = await asyncio.gather(*(job.wait(timeout, interval=interval) for job in found), return_exceptions=True)
        for error in (each for each in waits if isinstance(each, BaseException)):
            raise error
        return [await job.explained() for job in found]
