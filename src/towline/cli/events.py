"""`towline events` and `watch`: what happens to jobs, as it is written down and at regular times."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from towline.cli import wording
from towline.cli.documents import Document, event_as_dict, exit_as_dict, exit_status, job_as_dict, print_document
from towline.cli.doors import open_engine
from towline.cli.guard import Ended
from towline.cli.loop import run as run_loop
from towline.cli.options import CONTEXT, cluster_option, examples, interval_option, jobs_argument, json_option, seconds
from towline.cli.output import duration, moment, paint
from towline.cli.terminal import clean
from towline.engine.redaction import redacted

if TYPE_CHECKING:
    from towline.engine.watching.streams import Snapshot
    from towline.models.event import JobEvent
    from towline.models.job import JobRecord

_SILENCE = 60.0  # seconds without an answer after which a line says so

# --- events ---


@click.command(
    epilog=examples("towline events", "towline events --follow --json", "towline events -f train --after 1204"),
    context_settings=CONTEXT,
)
@click.argument("jobs", nargs=-1, metavar="[JOB]...")
@click.option("--follow", "-f", is_flag=True, help="Go on as things happen; with jobs, until they have ended.")
@click.option("--after", metavar="N", type=click.IntRange(min=0), default=0, help="Only events with higher numbers.")
@interval_option
@cluster_option
@json_option
def events(
    *, jobs: tuple[str, ...], follow: bool, after: int, interval: float | None, cluster: str | None, as_json: bool
) -> None:
    """Show what has happened to jobs: states, reasons for waiting, attempts, progress.

    Every event has a number and is told once, whichever process has seen it.
    """
    run_loop(_events(jobs, cluster, follow=follow, after=after, interval=interval, as_json=as_json))


async def _events(
    references: Sequence[str], name: str | None, *, follow: bool, after: int, interval: float | None, as_json: bool
) -> None:
    async with open_engine(name) as cluster:
        jobs = await cluster.find(references)
        async for event in cluster.events(jobs, after=after, follow=follow, interval=interval):
            if as_json:
                print_document(event_as_dict(event))
            else:
                print(redacted(clean(_line(event))), flush=True)


def _line(event: JobEvent) -> str:
    return f"{event.number:>6}  {moment(event.time)}  {event.job_id}  {event.job_name}  {wording.event(event)}"


# --- watch ---


@click.command(
    epilog=examples("towline watch k3v9x2m4q --every 5m", "towline watch train eval --every 10m --json"),
    context_settings=CONTEXT,
)
@jobs_argument
@click.option(
    "--every", metavar="TIME", default="60", callback=seconds, help="Seconds, 1 at least, or for example 5m or 1h."
)
@cluster_option
@json_option
def watch(jobs: tuple[str, ...], every: float, cluster: str | None, as_json: bool) -> None:
    """Print one line for each job at regular times, until all have ended, however long the queue is.

    It goes on while the cluster does not answer. The exit status is that of `towline wait`.
    """
    records = run_loop(_watch(jobs, cluster, max(every, 1.0), as_json=as_json))
    failed = next((record for record in records if exit_status(record)), None)
    if failed:
        raise Ended(exit_status(failed))


async def _watch(references: Sequence[str], name: str | None, every: float, *, as_json: bool) -> list[JobRecord]:
    async with open_engine(name) as cluster:
        jobs = await cluster.find(references)
        last = {job.reference: job.record for job in jobs}
        async for snapshot in cluster.snapshots(jobs, every):
            last[snapshot.record.reference] = snapshot.record
            if as_json:
                print_document(_as_document(snapshot))
            else:
                print(_as_line(snapshot), flush=True)
        return [last[job.reference] for job in jobs]


def _as_document(snapshot: Snapshot) -> Document:
    record = snapshot.record
    document: Document = {
        "event": "watch",
        "time": round(snapshot.time, 3),
        "job": job_as_dict(record),
        "heard": round(snapshot.heard, 3) or None,
        "trouble": snapshot.trouble,
    }
    return {**document, "exit": exit_as_dict(record)} if record.state.ended else document


def _as_line(snapshot: Snapshot) -> str:
    record = snapshot.record
    said = wording.verdict(record) if record.state.ended else wording.progress(record)
    parts = [time.strftime("%H:%M:%S", time.localtime(snapshot.time)), f"  {said}"]
    if not record.state.ended and (reported := wording.reported(record)):
        parts.append(f"; {reported}")
    if not record.state.ended and snapshot.trouble:
        silent = f", known from {duration(snapshot.time - snapshot.heard)} ago" if snapshot.heard else ""
        parts.append(f" (no answer from the cluster{silent}: {' '.join(snapshot.trouble.split())})")
    return paint(redacted(clean("".join(parts))), wording.colour_of(record), sys.stdout)
