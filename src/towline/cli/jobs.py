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
        "; ".join(filter(None, (record.note, "" if record.state.ended else wording.reported(record)))),
    )


# --- status ---


@click.command(epilog=examples("towline status k3v9x2m4q", "towline status train 41 --json"), context_settings=CONTEXT)
@jobs_argument
@cluster_option
@json_option
def status(jobs: tuple[str, ...], cluster: str | None, as_json: bool) -> None:
    """Show all that is known about jobs, each given by id, Slurm id or name.

    The exit status is 0 whatever state the jobs are in.
    """
    records = run_loop(_status(jobs, cluster))
    if as_json:
        print_document({"jobs": [job_as_dict(record) for record in records]})
    else:
        print(redacted("\n".join(_described(record) for record in records)), end="")


async def _status(references: Sequence[str], name: str | None) -> list[JobRecord]:
    async with open_cluster(name) as cluster:
        jobs = await cluster.find(references)
        for job in jobs:
            await job.status()
        return [await job.explained() for job in jobs]


def _described(record: JobRecord) -> str:
    headline = wording.verdict(record) if record.state.ended else wording.progress(record)
    facts = [
        *_why(record),
        ("name", record.name),
        ("cluster", record.cluster),
        ("command", record.command),
        ("directory", record.directory),
        ("created", moment(record.created)),
        *((f"attempt {attempt.number}", _attempt(attempt)) for attempt in record.attempts),
        *(_component(each) for each in record.last.components),
        *_tasks(record),
    ]
    width = max(len(label) for label, _ in facts) + 2
    lines = [f"  {label:<{width}}{clean(value)}" for label, value in facts if value]
    return "\n".join([paint(clean(headline), wording.colour_of(record), sys.stdout), *lines]) + "\n"


def _why(record: JobRecord) -> list[tuple[str, str]]:
    found = record.last.diagnosis
    if found is None or record.state is not JobState.FAILED:
        return []
    return [("why", "" if record.note == found.summary else found.summary), ("to do", found.advice)]


def _component(component: Component) -> tuple[str, str]:
    parts = (component.slurm_state, f"on {component.nodes}" if component.nodes else component.reason)
    return f"component {component.slurm_id}", ", ".join(part for part in parts if part not in ("", "None"))


_MOST_FAILURES = 20  # lines; the numbers of all failed tasks stand above them


def _tasks(record: JobRecord) -> list[tuple[str, str]]:
    if record.tasks is None:
        return []
    failures = sorted(record.tasks.failures, key=lambda each: each.task or 0)
    lines = [(f"task {each.task}", _attempt(dataclasses.replace(each, task=None))) for each in failures]
    return [("tasks", wording.tasks_text(record.tasks)), *lines[:_MOST_FAILURES]]


def _attempt(attempt: Attempt) -> str:
    parts = [
        f"Slurm job {attempt.slurm_id}" if attempt.slurm_id else "",
        attempt.slurm_state,
        f"on {attempt.nodes}" if attempt.nodes else "",
        f"started {moment(attempt.started)}" if attempt.started else "",
        f"ran {wording.elapsed(attempt)}" if attempt.ended and attempt.started else "",
        f"exit code {wording.exit_text(attempt)}" if attempt.exit_code is not None else "",
        wording.cause_text(attempt),
    ]
    return ", ".join(part for part in parts if part)


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
@cluster_option
@json_option
def wait(jobs: tuple[str, ...], timeout: float | None, cluster: str | None, as_json: bool) -> None:
    """Wait until jobs have ended, each given by id, Slurm id or name.

    The exit status is 0 when all succeeded, else that of the first one given that did not: its own code, or 72
    when it has none. It is 75 when the time ran out; the jobs go on then.
    """
    records = run_loop(_wait(jobs, cluster, timeout))
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


async def _wait(references: Sequence[str], name: str | None, timeout: float | None) -> list[JobRecord]:
    async with open_cluster(name) as cluster:
        found = await cluster.find(references)
        waits = await asyncio.gather(*(job.wait(timeout) for job in found), return_exceptions=True)
        for error in (each for each in waits if isinstance(each, BaseException)):
            raise error
        return [await job.explained() for job in found]
