"""`towline pause` and `towline resume`."""

from __future__ import annotations

import click

from towline.cli import wording
from towline.cli.documents import job_as_dict, print_document
from towline.cli.doors import open_cluster
from towline.cli.loop import run as run_loop
from towline.cli.options import CONTEXT, cluster_option, examples, jobs_argument, json_option
from towline.cli.terminal import clean
from towline.models.job import JobRecord


@click.command(epilog=examples("towline pause train"), context_settings=CONTEXT)
@jobs_argument
@cluster_option
@json_option
def pause(jobs: tuple[str, ...], cluster: str | None, as_json: bool) -> None:
    """Hold jobs that wait; suspend those that run, where the site lets users do that.

    Else a job that says how it resumes (--checkpoints) is told to end, put back into the queue and held there; it has
    the site's KillWait to save its work.
    """
    _show(run_loop(_told(jobs, cluster, paused=True)), as_json=as_json)


@click.command(epilog=examples("towline resume train"), context_settings=CONTEXT)
@jobs_argument
@cluster_option
@json_option
def resume(jobs: tuple[str, ...], cluster: str | None, as_json: bool) -> None:
    """Let paused jobs go on."""
    _show(run_loop(_told(jobs, cluster, paused=False)), as_json=as_json)


async def _told(references: tuple[str, ...], name: str | None, *, paused: bool) -> list[JobRecord]:
    async with open_cluster(name) as cluster:
        found = await cluster.find(references)
        return [await (job.pause() if paused else job.resume()) for job in found]


def _show(records: list[JobRecord], *, as_json: bool) -> None:
    if as_json:
        print_document({"jobs": [job_as_dict(record) for record in records]})
        return
    for record in records:
        print(clean(wording.progress(record)))
