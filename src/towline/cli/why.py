"""`towline why`: why jobs ended, or why they wait."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Sequence

import click

from towline.cli import wording
from towline.cli.documents import job_as_dict, print_document
from towline.cli.doors import open_cluster
from towline.cli.loop import run as run_loop
from towline.cli.options import CONTEXT, cluster_option, examples, jobs_argument, json_option
from towline.cli.output import RED, paint
from towline.cli.terminal import clean
from towline.engine.redaction import redacted
from towline.engine.watching.causes import causes
from towline.models.diagnosis import Diagnosis
from towline.models.job import JobRecord, JobState

_FACTS = 2
"""Lines of a diagnosis that say what happened; the others say what to do."""

Explained = tuple[JobRecord, "Diagnosis | None"]


@click.command(epilog=examples("towline why k3v9x2m4q", "towline why train_3 --json"), context_settings=CONTEXT)
@jobs_argument
@cluster_option
@json_option
def why(jobs: tuple[str, ...], cluster: str | None, as_json: bool) -> None:
    """Say why jobs ended, each given by id, Slurm id or name: the cause, the line that shows it, and what to do.

    The logs are searched on the cluster. Of an array each cause is said once, with the numbers of the tasks that failed
    of it. Of a job that waits it is the reason. The exit status is 0 whatever is found.
    """
    found = run_loop(_explain(jobs, cluster))
    if as_json:
        print_document({"jobs": [_as_dict(each) for each in found]})
    else:
        print(redacted("\n".join(_described(each) for each in found)), end="")


async def _explain(references: Sequence[str], name: str | None) -> list[Explained]:
    async with open_cluster(name) as cluster:
        jobs = await cluster.find(references)
        for job in jobs:
            await job.status()
        found = [await job.why() for job in jobs]  # the record has what was found of an array's tasks afterwards
        return [(job.record, each) for job, each in zip(jobs, found, strict=True)]


def _as_dict(found: Explained) -> dict[str, object]:
    record, diagnosis = found
    return {
        "job": job_as_dict(record),
        "diagnosis": dataclasses.asdict(diagnosis) if diagnosis else None,
        "causes": [dataclasses.asdict(each) for each in causes(record)],
    }


def _described(found: Explained) -> str:
    record, diagnosis = found
    if blocked := wording.blocked(record):
        return f"{paint(clean(blocked), RED, sys.stdout)}\n"
    if record.tasks is not None:
        headline = wording.verdict(record) if record.state.ended else wording.progress(record)
        lines = wording.tasks_causes(record)
    elif not record.state.ended or record.state is JobState.SUCCEEDED:
        headline = wording.verdict(record) if record.state.ended else wording.progress(record)
        # What to do was done: it was started again.
        lines = wording.diagnosis(diagnosis)[:_FACTS] if diagnosis else []
        lines = [f"  {line}" for line in ("its attempt before this one ended so:", *lines) if line] if lines else []
    elif record.state is JobState.FAILED and diagnosis is None:
        headline = wording.verdict(record)
        lines = [f"  nothing in its log says why; read its end: towline logs --tail 50 {record.reference}"]
    else:
        headline, *lines = wording.ending(_with(record, diagnosis))
    text = "".join(f"{clean(line)}\n" for line in lines)
    return f"{paint(clean(headline), wording.colour_of(record), sys.stdout)}\n{text}"


def _with(record: JobRecord, diagnosis: Diagnosis | None) -> JobRecord:
    """The job with the diagnosis at its newest attempt."""
    last = dataclasses.replace(record.last, diagnosis=diagnosis)
    return dataclasses.replace(record, attempts=(*record.attempts[:-1], last))
