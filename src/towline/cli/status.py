"""`towline status`: all that is known about jobs."""

from __future__ import annotations

import dataclasses
import sys
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from towline.cli import wording
from towline.cli.documents import job_as_dict, print_document
from towline.cli.doors import open_cluster
from towline.cli.loop import run as run_loop
from towline.cli.options import CONTEXT, cluster_option, examples, jobs_argument, json_option
from towline.cli.output import RED, duration, moment, paint
from towline.cli.terminal import clean
from towline.engine.redaction import redacted
from towline.models.job import Attempt, Component, JobRecord, JobState

if TYPE_CHECKING:
    from towline.models.summary import JobSummary

Fact = tuple[str, str]


@click.command(epilog=examples("towline status k3v9x2m4q", "towline status train 41 --json"), context_settings=CONTEXT)
@jobs_argument
@cluster_option
@json_option
def status(jobs: tuple[str, ...], cluster: str | None, as_json: bool) -> None:
    """Show all that is known about jobs, each given by id, Slurm id or name.

    For a job that waits: why, what is behind that, when Slurm expects to start it, and what would start it sooner. The
    exit status is 0 whatever state the jobs are in.
    """
    found = run_loop(_status(jobs, cluster))
    if as_json:
        documents = [{**job_as_dict(record), "summary": dataclasses.asdict(figures)} for record, figures in found]
        print_document({"jobs": documents})
    else:
        print(redacted("\n".join(_described(record, figures) for record, figures in found)), end="")


async def _status(references: Sequence[str], name: str | None) -> list[tuple[JobRecord, JobSummary]]:
    async with open_cluster(name) as cluster:
        jobs = await cluster.find(references)
        for job in jobs:
            await job.status()
        return [(await job.explained(), await job.summary()) for job in jobs]


def _described(record: JobRecord, figures: JobSummary) -> str:
    waiting = figures.waiting
    headline = wording.verdict(record) if record.state.ended else wording.progress(record)
    colour = RED if waiting and waiting.blocked else wording.colour_of(record)
    facts = [
        *_why(record),
        *_waits(figures),
        ("name", record.name),
        ("cluster", record.cluster),
        ("command", record.command),
        ("directory", record.directory),
        ("asks for", _asks(figures)),
        ("life", life_line(record)),
        ("used", _used(figures)),
        ("progress", wording.reported(record)),
        *((f"attempt {attempt.number}", _attempt(attempt)) for attempt in record.attempts),
        *(_component(each) for each in record.last.components),
        *_tasks(record),
    ]
    width = max(len(label) for label, _ in facts) + 2
    lines = [f"  {label:<{width}}{clean(value)}" for label, value in facts if value]
    return "\n".join([paint(clean(headline), colour, sys.stdout), *lines]) + "\n"


def _waits(figures: JobSummary) -> list[Fact]:
    """Why it waits; the sentence itself is in the headline."""
    waiting = figures.waiting
    if waiting is None:
        return []
    start = ""
    if waiting.start_in is not None:
        where = f" on {waiting.nodes}" if waiting.nodes else ""
        when = moment(time.time() + waiting.start_in)
        start = f"in {duration(waiting.start_in)} ({when}){where}, as Slurm expects now"
    return [
        ("blocked", "it will not start unless something is done" if waiting.blocked else ""),
        *(("because", fact) for fact in waiting.facts),
        ("start", start),
        *(("sooner", way) for way in waiting.sooner),
    ]


def _asks(figures: JobSummary) -> str:
    nodes = f"{figures.nodes} node{'s' if figures.nodes != 1 else ''}"
    parts = [
        nodes,
        f"{figures.gpus} GPU{'s' if figures.gpus != 1 else ''}" if figures.gpus else "",
        f"{figures.cpus} CPUs" if figures.cpus else "",
        f"for {duration(figures.time)}" if figures.time else "",
        f"partition {','.join(figures.partition)}" if figures.partition else "",
        f"account {figures.account}" if figures.account else "",
        f"QOS {figures.qos}" if figures.qos else "",
    ]
    return ", ".join(part for part in parts if part)


def _used(figures: JobSummary) -> str:
    parts = [
        f"waited {duration(figures.waited)}" if figures.waited is not None else "",
        f"ran {duration(figures.ran)}" if figures.ran is not None else "",
        f"{figures.gpu_hours:.2f} GPU-hours" if figures.gpu_hours and figures.gpus else "",
    ]
    used = ", ".join(part for part in parts if part)
    most = f"of {figures.gpu_hours_most:.2f} at most for one attempt" if figures.gpu_hours_most else ""
    return f"{used} ({most})" if used and most and figures.gpu_hours else used


def life_line(record: JobRecord) -> str:
    """What happened to the job and when, in one line; times of day, with the date where it changes."""
    steps: list[tuple[float | None, str]] = [(record.created, "created")]
    for attempt in record.attempts:
        again = f" as attempt {attempt.number}" if attempt.number > 1 else ""
        steps.append((attempt.submitted, f"queued{again}"))
        steps.append((attempt.started, f"started on {attempt.nodes}" if attempt.nodes else "started"))
        end = (attempt.slurm_state or "ended") if attempt is not record.last or not record.state.ended else ""
        steps.append((attempt.ended, end or str(record.state)))
    told: list[str] = []
    day = ""
    for when, what in steps:
        if when:
            date, _, clock = moment(when).partition(" ")
            told.append(f"{what} {clock if date == day else f'{date} {clock}'}")
            day = date
    if not record.state.ended:
        told.append(f"{record.state} now")
    return " → ".join(told)


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
    waited = attempt.started - attempt.submitted if attempt.started and attempt.submitted else None
    parts = [
        f"Slurm job {attempt.slurm_id}" if attempt.slurm_id else "",
        attempt.slurm_state,
        f"on {attempt.nodes}" if attempt.nodes else "",
        f"started {moment(attempt.started)}" if attempt.started else "",
        f"after {duration(waited)} in the queue" if waited is not None else "",
        f"ran {wording.elapsed(attempt)}" if attempt.ended and attempt.started else "",
        f"exit code {wording.exit_text(attempt)}" if attempt.exit_code is not None else "",
        wording.cause_text(attempt),
    ]
    return ", ".join(part for part in parts if part)
