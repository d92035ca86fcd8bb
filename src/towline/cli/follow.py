"""Following a job: the first Ctrl-C detaches and says how to come back, a second one soon after cancels the job."""

from __future__ import annotations

import asyncio
import contextlib
import shlex
from typing import Any

from towline.cli.documents import exit_status
from towline.cli.doors import Job
from towline.cli.loop import Interrupts
from towline.cli.output import StatusLine
from towline.cli.view import View
from towline.engine.events import LogChoice
from towline.models.errors import INTERRUPTED, TowlineError
from towline.models.job import JobRecord

SECOND_CHANCE = 3.0  # seconds in which a second Ctrl-C cancels the job
_TICK = 1.0  # seconds


async def follow(job: Job, view: View, *, cluster: str | None = None) -> int:
    """Show the job until it has ended or Ctrl-C is pressed; the result is the exit status.

    Args:
        job: the job.
        view: shows what happens.
        cluster: the profile as the user named it, for the commands that are suggested.
    """
    with Interrupts() as interrupts:
        # The logs of many tasks are for those who ask for them.
        showing = asyncio.ensure_future(show(job, view, logs=job.record.tasks is None))
        pressed = asyncio.ensure_future(interrupts.pressed())
        ticking = asyncio.ensure_future(_tick(view))
        try:
            await asyncio.wait({showing, pressed}, return_when=asyncio.FIRST_COMPLETED)
            if not showing.done():
                showing.cancel()
                return await _detach(job, view, interrupts, cluster)
            return exit_status(_result(showing, job, cluster))
        finally:
            await _stop(pressed, ticking, showing)


async def show(
    job: Job,
    view: View,
    *,
    tail: int | None = None,
    choice: LogChoice | None = None,
    logs: bool = True,
    interval: float | None = None,
) -> JobRecord:
    """Show the job until it has ended; the result is the job as it is then."""
    async for event in job.follow(tail=tail, choice=choice or LogChoice(), logs=logs, interval=interval):
        view.event(event)
    if not job.record.state.ended:
        await job.status()
    record = await job.explained()
    view.ended(record)
    return record


def _result(showing: asyncio.Future[JobRecord], job: Job, cluster: str | None) -> JobRecord:
    try:
        return showing.result()
    except TowlineError:
        say_how_to_come_back(
            job, cluster, f"job {job.reference} is not followed any more; what Slurm does with it goes on"
        )
        raise


async def _tick(view: View) -> None:
    while True:
        await asyncio.sleep(_TICK)
        view.tick()


async def _detach(job: Job, view: View, interrupts: Interrupts, cluster: str | None) -> int:
    view.detached(job.record)
    say_how_to_come_back(job, cluster, f"detached; job {job.reference} goes on")
    news = StatusLine()
    news.say(f"press Ctrl-C again within {SECOND_CHANCE:g} s to cancel the job")
    if await interrupts.pressed(SECOND_CHANCE):
        interrupts.let_through()
        news.say(f"cancelling job {job.reference} …")
        view.cancelled(await job.cancel())
    return INTERRUPTED


def say_how_to_come_back(job: Job, cluster: str | None, first: str) -> None:
    """Tell on stderr that the job goes on, and the commands to follow or cancel it."""
    news = StatusLine()
    option = f" --cluster {shlex.quote(cluster)}" if cluster else ""
    news.say(first)
    back = "wait" if job.record.tasks is not None else "logs -f"  # the tasks of an array have a log each
    news.say(f"  come back: towline {back}{option} {job.reference}")
    news.say(f"  cancel it: towline cancel{option} {job.reference}")


async def _stop(*tasks: asyncio.Future[Any]) -> None:
    for task in tasks:
        task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await asyncio.gather(*tasks, return_exceptions=True)
