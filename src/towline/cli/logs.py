"""`towline logs`: what jobs wrote, once or as it grows."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import click

from towline.cli.doors import Job, open_cluster
from towline.cli.follow import show
from towline.cli.logstream import HeadedLog, LogWriter
from towline.cli.loop import run as run_loop
from towline.cli.options import CONTEXT, cluster_option, examples, jobs_argument, json_option
from towline.cli.output import StatusLine
from towline.cli.view import JsonView, TextView, View
from towline.models.errors import UsageError
from towline.models.job import JobState


@click.command(
    epilog=examples("towline logs k3v9x2m4q", "towline logs -f --tail 20 train", "towline logs train eval > both.txt"),
    context_settings=CONTEXT,
)
@jobs_argument
@click.option("--follow", "-f", is_flag=True, help="Go on until the jobs have ended.")
@click.option("--tail", metavar="N", type=click.IntRange(min=0), help="Begin with the last N lines of each stream.")
@click.option("--role", default="", metavar="NAME", help="The log of one role only, of a job that has roles.")
@cluster_option
@json_option
def logs(
    *, jobs: tuple[str, ...], follow: bool, tail: int | None, role: str, cluster: str | None, as_json: bool
) -> None:
    """Print the logs of jobs, each given by id, Slurm id or name.

    What a job wrote to stdout goes to stdout, its stderr to stderr, byte for byte; a terminal is spared everything
    that would steer it except colours. With several jobs a line `==> id name <==` says whose log goes on. Ctrl-C
    ends the printing, not the job. The tasks of an array have a log each; JOB_3 means one of them. The exit status
    is 0 whatever became of the jobs.
    """
    run_loop(_logs(jobs, cluster, follow=follow, tail=tail, role=role, as_json=as_json))


async def _logs(
    references: Sequence[str], name: str | None, *, follow: bool, tail: int | None, role: str, as_json: bool
) -> None:
    async with open_cluster(name) as cluster:
        jobs = [each for job in await cluster.find(references) for each in await _single(job, follow=follow)]
        if role:
            _check_role(role, jobs)
        views = [JsonView(job.reference, role) for job in jobs] if as_json else _text_views(jobs, role)
        pairs = zip(jobs, views, strict=True)
        if follow:
            await asyncio.gather(*(show(job, view, tail=tail) for job, view in pairs))
        else:
            for job, view in pairs:
                await _read(job, view, tail)


async def _single(job: Job, *, follow: bool) -> Sequence[Job]:
    """The job itself, or the tasks of an array that have begun: each has a log of its own."""
    if job.record.tasks is None:
        return [job]
    if follow:
        raise UsageError(
            f"job {job.reference} is an array of {len(job.record.tasks.numbers)} tasks, which have a log each",
            fix=f"Follow one of them, as in `towline logs -f {job.reference}_{min(job.record.tasks.numbers)}`, or the "
            f"whole with `towline wait {job.reference}`.",
        )
    tasks = (await job.status()).tasks
    waiting = tasks.by_state()[JobState.PENDING] if tasks else ()
    return [each for each in job.tasks() if each.record.task not in waiting]


def _check_role(role: str, jobs: Sequence[Job]) -> None:
    for job in jobs:
        if role not in job.record.roles:
            there = f"It has {', '.join(job.record.roles)}." if job.record.roles else "It has no roles."
            raise UsageError(f"job {job.reference} has no role {role}", why=there)


def _text_views(jobs: Sequence[Job], role: str) -> list[TextView]:
    if len(jobs) == 1:
        return [TextView(log=LogWriter(role))]
    status, turns = StatusLine(), list[str]()
    return [TextView(status, HeadedLog(f"{job.reference} {job.record.name}", turns, role)) for job in jobs]


async def _read(job: Job, view: View, tail: int | None) -> None:
    async for chunk in job.read_logs(tail=tail):
        view.event(chunk)
    view.finish()
