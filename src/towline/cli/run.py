"""`towline run`: plan, submit, follow."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import click

from towline.cli import wording
from towline.cli.documents import job_as_dict, print_document
from towline.cli.doors import Cluster, Job, open_cluster_soon
from towline.cli.follow import follow, say_how_to_come_back
from towline.cli.guard import Ended
from towline.cli.loop import run as run_loop
from towline.cli.options import CONTEXT, examples, seconds
from towline.cli.output import StatusLine
from towline.cli.plan import GroupedCommand, job_options, look_ahead, show_plan
from towline.cli.spec_input import read_spec
from towline.cli.terminal import clean
from towline.cli.view import JsonView, TextView
from towline.engine.events import Held
from towline.models.errors import TowlineError
from towline.models.job import JobRecord, JobState

if TYPE_CHECKING:
    from towline.engine.events import Progress
    from towline.models.code import Code
    from towline.models.spec import JobSpec

_EXAMPLES = examples(
    "towline run -- python train.py --epochs 3",
    "towline run --nodes 2 --gpus-per-node 8 --time 4h --mount /lustre/data:/data:ro -- torchrun train.py",
    "towline run --image nvcr.io/nvidia/pytorch:24.07-py3 --shell 'nvidia-smi | tee gpus.txt'",
    "towline run -f job.yaml --time 2h",
    "towline run --code . --image nvcr.io/nvidia/pytorch:24.07-py3 -- python train.py",
    "towline run --dry-run --nodes 64 -- python train.py",
    "ID=$(towline run --detach -- python train.py)",
    "towline run --secret HF_TOKEN --secret NGC_KEY=file:~/.ngc-key -- python train.py",
)


@dataclass(frozen=True)
class Manner:
    """How a run is carried out, beside the job itself."""

    cluster: str | None
    detach: bool
    dry_run: bool
    as_json: bool
    secrets: tuple[str, ...] = ()
    no_input: bool = False
    patience: float | None = None

    @property
    def longest_hold(self) -> float | None:
        """Seconds to wait while Slurm takes no jobs; None for ever."""
        return DETACHED_PATIENCE if self.patience is None and self.detach else self.patience


DETACHED_PATIENCE = 300.0
"""Seconds that `--detach` waits for a Slurm that says "later", unless it is told how long."""

F = TypeVar("F", bound=Callable[..., Any])


def sending_options(function: F) -> F:
    """How a job is sent: `--detach`, `--patience` and `--no-input`."""
    detach = click.option("--detach", "-d", is_flag=True, help="Return after submission; the job's id is printed.")
    patience = click.option(
        "--patience",
        metavar="TIME",
        callback=seconds,
        help="Wait so long while Slurm takes no jobs; without end by default, 5m with --detach.",
    )
    no_input = click.option(
        "--no-input", is_flag=True, help="Never ask for the value of a secret; one that is missing is an error."
    )
    return detach(patience(no_input(function)))


@click.command(cls=GroupedCommand, epilog=_EXAMPLES, context_settings={**CONTEXT, "allow_interspersed_args": False})
@job_options
@sending_options
@click.option("--dry-run", is_flag=True, help="Show checks, files, script and command; change nothing.")
def run(command: tuple[str, ...], **values: Any) -> None:
    """Run a command in a container on the cluster and follow it.

    Checks the job against the cluster, submits it, shows why it waits, its log as it grows and how it ended. The
    exit status is the job's own code. The first Ctrl-C leaves the job alone and says how to come back; a second
    one within 3 seconds cancels it.
    """
    manner = Manner(
        values["cluster"],
        values["detach"],
        values["dry_run"],
        values["as_json"],
        values["secret"],
        values["no_input"],
        values["patience"],
    )
    spec = read_spec(command, values, manner.cluster)
    secrets = look_ahead(spec, manner.secrets) if manner.dry_run else read_secrets(spec, manner)
    status = run_loop(_run(spec, manner, secrets))
    if status:
        raise Ended(status)


def read_secrets(spec: JobSpec, manner: Manner) -> dict[str, str | bytes]:
    """The values of the job's secrets; a person is asked before anything else takes time."""
    if not spec.secrets:
        return {}
    from towline.engine.submitting.secret_sources import drop_variables, read_source, sources_for

    sources = sources_for(spec, manner.secrets)
    ask = None if manner.no_input or not sys.stdin.isatty() else _ask
    values = {source.name: read_source(source, os.environ, ask) for source in sources}
    drop_variables(sources, os.environ)
    return values


def _ask(name: str) -> str:
    return str(click.prompt(f"Value of {name}", hide_input=True, err=True))


async def _run(spec: JobSpec, manner: Manner, secrets: dict[str, str | bytes]) -> int:
    async with open_cluster_soon(manner.cluster) as cluster:
        if manner.dry_run:
            return await show_plan(cluster, spec, secrets, as_json=manner.as_json)
        return await _submit_and_follow(cluster, spec, manner, secrets)


async def _submit_and_follow(cluster: Cluster, spec: JobSpec, manner: Manner, secrets: dict[str, str | bytes]) -> int:
    plan = await cluster.plan(spec, secrets=secrets)
    if plan.code:
        _say_code(plan.code, quiet=manner.as_json)

    async def send(told: Callable[[Held], None]) -> Job:
        sending = _Sending(quiet=manner.as_json)
        try:
            return await cluster.submit(
                spec, plan, secrets=secrets, patience=manner.longest_hold, told=told, progress=sending.take
            )
        finally:
            sending.end()

    return await send_and_follow(cluster, plan.job_id, send, manner)


async def send_and_follow(
    cluster: Cluster, job_id: str, send: Callable[[Callable[[Held], None]], Awaitable[Job]], manner: Manner
) -> int:
    """Send a job and go on as the manner says; the result is the exit status.

    Args:
        cluster: where it runs.
        job_id: the id that the job has.
        send: submits it, and tells its argument before each pause.
        manner: whether to stay, and how to show it.
    """
    view = JsonView(job_id) if manner.as_json and not manner.detach else TextView()
    try:
        job = await send(view.held)
    except asyncio.CancelledError:
        await _say_what_became(cluster, job_id)
        raise
    finally:
        view.finish()
    try:
        if manner.detach:
            _print_submitted(job.record, as_json=manner.as_json)
            return 0
        view.submitted(job.record)
        return await follow(job, view, cluster=manner.cluster)
    except OSError:
        say_how_to_come_back(job, manner.cluster, f"nobody takes the output any more; job {job.reference} goes on")
        raise


class _Sending:
    """Shows how far the code is on its way; in the end the line goes."""

    def __init__(self, *, quiet: bool) -> None:
        self._news = StatusLine(quiet=quiet)
        self._show: Callable[[Progress], None] | None = None

    def take(self, progress: Progress) -> None:
        if self._show is None:
            from towline.cli.results import progress_printer

            self._show = progress_printer(self._news, "sending the code")
        self._show(progress)

    def end(self) -> None:
        self._news.clear()


def _say_code(code: Code, *, quiet: bool) -> None:
    from towline.engine.staging.code import notes

    news = StatusLine(quiet=quiet)
    for note in notes(code):
        news.say(clean(note))


async def _say_what_became(cluster: Cluster, job_id: str) -> None:
    """After Ctrl-C during a submission: whether there is a job, as far as is known here."""
    try:
        (job,) = await cluster.find([job_id])
        refused = job.record.state is JobState.REFUSED
    except TowlineError:
        refused = False
    if refused:
        StatusLine().say(f"Slurm had not taken job {job_id} yet; nothing was submitted")
    else:
        StatusLine().say(f"interrupted while job {job_id} was being submitted; `towline ps` says what became of it")


def _print_submitted(record: JobRecord, *, as_json: bool) -> None:
    if as_json:
        print_document({"job": job_as_dict(record)})
        return
    print(record.reference, flush=True)
    if sys.stderr.isatty():
        StatusLine().say(wording.submitted(record))
