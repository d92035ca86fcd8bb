"""`towline logs`: what jobs wrote, once or as it grows."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import click

from towline.cli.doors import Job, open_cluster
from towline.cli.follow import show
from towline.cli.loglines import LineFilter
from towline.cli.logstream import HeadedLog, LogWriter
from towline.cli.logtimes import Since
from towline.cli.loop import run as run_loop
from towline.cli.options import CONTEXT, cluster_option, examples, interval_option, jobs_argument, json_option, seconds
from towline.cli.output import StatusLine
from towline.cli.view import JsonView, TextView, View
from towline.engine.events import LogChoice
from towline.models.errors import UsageError
from towline.models.job import JobState


@dataclass(frozen=True)
class _Wish:
    """What is to be shown, and how."""

    choice: LogChoice
    follow: bool
    tail: int | None
    grep: re.Pattern[str] | None
    since: float | None
    as_json: bool
    interval: float | None

    def views(self, jobs: Sequence[Job], now: datetime | None) -> Sequence[View]:
        if self.as_json:
            return [JsonView(job.reference, self._lines(now)) for job in jobs]
        if len(jobs) == 1:
            return [TextView(log=LogWriter(self.choice, self._lines(now)))]
        status, turns = StatusLine(), list[str]()
        titles = [f"{job.reference} {job.record.name}" for job in jobs]
        return [TextView(status, HeadedLog(title, turns, self.choice, self._lines(now))) for title in titles]

    def _lines(self, now: datetime | None) -> LineFilter | None:
        since = Since(now - timedelta(seconds=self.since), now) if now and self.since is not None else None
        return LineFilter(self.grep, since) if self.grep or since else None


def _pattern(_context: click.Context, _parameter: click.Parameter, value: str | None) -> re.Pattern[str] | None:
    try:
        return re.compile(value) if value else None
    except re.error as error:
        raise click.BadParameter(f"{value!r} is not a regular expression: {error}") from None


@click.command(
    epilog=examples(
        "towline logs k3v9x2m4q",
        "towline logs -f --tail 20 train",
        "towline logs -f --rank 3 train",
        "towline logs --since 10m --grep 'loss|Error' train",
        "towline logs train eval > both.txt",
    ),
    context_settings=CONTEXT,
)
@jobs_argument
@click.option("--follow", "-f", is_flag=True, help="Go on until the jobs have ended.")
@click.option("--tail", metavar="N", type=click.IntRange(min=0), help="Begin with the last N lines of each file.")
@click.option("--attempt", metavar="N", type=click.IntRange(min=1), help="Of this attempt; the newest when not given.")
@click.option("--role", default="", metavar="NAME", help="The log of one role only, of a job that has roles.")
@click.option("--rank", metavar="N", type=click.IntRange(min=0), help="The log of one rank only (--log-per rank).")
@click.option("--node", default="", metavar="NAME", help="The logs of one node only (--log-per node or rank).")
@click.option(
    "--since", metavar="TIME", callback=seconds, help="Only what was written since, as far as lines say when."
)
@click.option("--grep", metavar="REGEX", callback=_pattern, help="Only lines in which this is found.")
@interval_option
@cluster_option
@json_option
def logs(
    *,
    jobs: tuple[str, ...],
    follow: bool,
    tail: int | None,
    attempt: int | None,
    role: str,
    rank: int | None,
    node: str,
    since: float | None,
    grep: re.Pattern[str] | None,
    interval: float | None,
    cluster: str | None,
    as_json: bool,
) -> None:
    """Print the logs of jobs, each given by id, Slurm id or name.

    What a job wrote to stdout goes to stdout, its stderr to stderr, byte for byte; a terminal is spared everything
    that would steer it except colours. Where roles, ranks or the tasks of an array have logs of their own, lines come
    as they arrive, with `policy: ` or `3: ` before them; JOB_3 means one task. With several jobs a line
    `==> id name <==` says whose log goes on. Ctrl-C ends the printing, not the job. The exit status is 0 whatever
    became of the jobs.
    """
    try:
        choice = LogChoice(role, rank, node, attempt)
    except ValueError as error:
        raise UsageError(f"--node: {error}") from None
    run_loop(_logs(jobs, cluster, _Wish(choice, follow, tail, grep, since, as_json, interval)))


async def _logs(references: Sequence[str], name: str | None, wish: _Wish) -> None:
    async with open_cluster(name) as cluster:
        jobs = [each for job in await cluster.find(references) for each in await _single(job, follow=wish.follow)]
        if wish.choice.role:
            _check_role(wish.choice.role, jobs)
        now = await cluster.clock() if wish.since is not None else None
        pairs = zip(jobs, wish.views(jobs, now), strict=True)
        if wish.follow:
            await asyncio.gather(
                *(show(job, view, tail=wish.tail, choice=wish.choice, interval=wish.interval) for job, view in pairs)
            )
        else:
            for job, view in pairs:
                await _read(job, view, wish)


async def _single(job: Job, *, follow: bool) -> Sequence[Job]:
    """The job itself, or the tasks of an array that have begun: each has a log of its own."""
    if job.record.tasks is None or follow:
        return [job]
    tasks = (await job.status()).tasks
    waiting = tasks.by_state()[JobState.PENDING] if tasks else ()
    return [each for each in job.tasks() if each.record.task not in waiting] or [job]


def _check_role(role: str, jobs: Sequence[Job]) -> None:
    for job in jobs:
        if role not in job.record.roles:
            there = f"It has {', '.join(job.record.roles)}." if job.record.roles else "It has no roles."
            raise UsageError(f"job {job.reference} has no role {role}", why=there)


async def _read(job: Job, view: View, wish: _Wish) -> None:
    something = False
    async for chunk in job.read_logs(tail=wish.tail, choice=wish.choice):
        something = True
        view.event(chunk)
    view.finish()
    if not something and wish.tail != 0:
        view.no_log(job.record if job.record.state.ended else await job.status(), wish.choice)
