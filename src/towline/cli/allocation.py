"""`towline shell` without a job: an allocation that lasts as long as the shell in it."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import AsyncIterator, Generator
from typing import TYPE_CHECKING, Any, cast

from towline.cli import wording
from towline.cli.doors import Cluster, Job, open_cluster_soon
from towline.cli.output import StatusLine
from towline.cli.spec_input import read_spec
from towline.cli.view import TextView
from towline.models.errors import NotFound, UsageError
from towline.models.job import JobState

if TYPE_CHECKING:
    from towline.engine.inside.entering import Place
    from towline.models.spec import JobSpec

_NOT_HERE = ("shell", "array", "launch")
_PAUSE = 1.0
"""Seconds until it is looked again whether the first rank has begun."""


async def allocate(values: dict[str, Any], cluster: str | None, place: Place) -> int:
    """Have an allocation, open a shell in it, and let it go; gives the shell's exit code."""
    spec = _spec(values, cluster)
    with _ends_in_order() as ended:
        try:
            async with open_cluster_soon(cluster) as opened:
                job = await _submitted(opened, spec, values["secret"])
                async with job.held():
                    return await _in_it(job, place)
        except asyncio.CancelledError:
            if ended:
                return 128 + ended[0]
            raise


def _spec(values: dict[str, Any], cluster: str | None) -> JobSpec:
    from towline.engine.inside.holding import allocation

    if wrong := next((name for name in _NOT_HERE if values.get(name)), None):
        raise UsageError(f"--{wrong} is for jobs with a command", fix="A shell takes what such a job asks for.")
    own = {"name": values.get("name") or "shell", **allocation()}
    spec = read_spec((), {**values, **own}, cluster)
    if spec.roles or spec.array:
        raise UsageError("a shell needs an allocation of one kind", fix="Leave out the roles, or the array.")
    return spec


async def _submitted(cluster: Cluster, spec: JobSpec, sources: tuple[str, ...]) -> Job:
    from towline.cli.run import Manner, read_secrets

    view = TextView()
    values = read_secrets(spec, Manner(None, detach=False, dry_run=False, as_json=False, secrets=sources))
    try:
        job = await cluster.submit(spec, secrets=values, told=view.held)
    finally:
        view.finish()
    view.submitted(job.record)
    return job


async def _in_it(job: Job, place: Place) -> int:
    view = TextView()
    ticking = asyncio.ensure_future(_tick(view))
    try:
        async with contextlib.aclosing(cast("Any", job.follow(logs=False))) as events:
            await _until_it_runs(job, view, events)
    finally:
        ticking.cancel()
        view.finish()
    while not job.record.state.ended:
        try:
            code = await job.attend(place=place)
        except NotFound:  # its container is still being started, or it has ended
            await asyncio.sleep(_PAUSE)
            await job.status()
            continue
        StatusLine().say(f"the allocation ends (job {job.reference})")
        return code
    StatusLine().say(wording.verdict(job.record), wording.colour_of(job.record))
    return job.record.exit_code or 1


async def _until_it_runs(job: Job, view: TextView, events: AsyncIterator[Any]) -> None:
    async for event in events:
        view.event(event)
        if job.record.state is JobState.RUNNING:
            return


async def _tick(view: TextView) -> None:
    while True:
        await asyncio.sleep(1.0)
        view.tick()


@contextlib.contextmanager
def _ends_in_order() -> Generator[list[int], None, None]:
    """When the terminal is closed, or somebody ends this process, the allocation is let go first; gives the signal."""
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    ended: list[int] = []

    def end(number: int) -> None:
        ended.append(number)
        if task:
            task.cancel()

    signals = (signal.SIGHUP, signal.SIGTERM)
    for each in signals:
        loop.add_signal_handler(each, end, int(each))
    try:
        yield ended
    finally:
        for each in signals:
            loop.remove_signal_handler(each)
