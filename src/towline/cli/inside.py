"""`towline exec`, `shell` and `gpus`: inside jobs that run."""

from __future__ import annotations

import dataclasses
import sys
from typing import TYPE_CHECKING, Any

import click

from towline.cli.documents import print_document
from towline.cli.doors import Job, open_cluster
from towline.cli.guard import Ended
from towline.cli.loop import run as run_loop
from towline.cli.options import CONTEXT, cluster_option, examples, jobs_argument, json_option
from towline.cli.output import table, width_of
from towline.cli.plan import GroupedCommand
from towline.cli.spec_input import file_option
from towline.cli.spec_options import spec_options
from towline.models.errors import UsageError

if TYPE_CHECKING:
    from towline.engine.inside.entering import GpuReading, Place

_WHERE = (
    click.option("--node", default="", metavar="NAME", help="On this node."),
    click.option("--rank", type=click.IntRange(min=0), metavar="N", help="Beside this rank; the lowest by default."),
    click.option("--role", default="", metavar="NAME", help="Beside a rank of this role."),
    click.option("--secrets", is_flag=True, help="Have the job's secrets in its environment, too."),
)


def _where(function: Any) -> Any:
    for option in _WHERE:
        function = option(function)
    return function


def _place(role: str, rank: int | None, node: str, *, secrets: bool) -> Place:
    from towline.engine.inside.entering import Place

    return Place(role, rank, node, secrets)


@click.command(
    "exec",
    epilog=examples(
        "towline exec train -- nvidia-smi",
        "towline exec --rank 3 train -- py-spy dump --pid 1",
        "towline exec -i train -- tar xf - -C /tmp < more.tar",
    ),
    context_settings={**CONTEXT, "allow_interspersed_args": False},
)
@_where
@click.option("--stdin", "-i", "stdin", is_flag=True, help="Pass stdin on; without it the command has none.")
@click.option("--terminal/--no-terminal", "-t/-T", default=None, help="Give it a terminal; by default if this is one.")
@cluster_option
@click.argument("job", metavar="JOB")
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED, metavar="[--] CMD [ARG]...")
def exec_(
    *,
    job: str,
    command: tuple[str, ...],
    role: str,
    rank: int | None,
    node: str,
    secrets: bool,
    stdin: bool,
    terminal: bool | None,
    cluster: str | None,
) -> None:
    """Run a command inside a running job: beside one of its ranks, with its environment, in its container.

    It is a step of the job, so it sees the job's GPUs, and ends with the job. The exit status is the command's.
    """
    words = command[1:] if command[0] == "--" else command
    if not words:
        raise UsageError("the command to run is missing", fix="Write it at the end: towline exec JOB -- nvidia-smi")
    if terminal and not sys.stdin.isatty():
        raise UsageError("there is no terminal to pass on", fix="Leave -t out; -i passes on what is piped in.")
    attended = sys.stdin.isatty() and sys.stdout.isatty() if terminal is None else terminal
    status = run_loop(
        _exec(job, cluster, words, _place(role, rank, node, secrets=secrets), stdin=stdin, terminal=attended)
    )
    if status:
        raise Ended(status)


async def _exec(
    reference: str, cluster: str | None, words: tuple[str, ...], place: Place, *, stdin: bool, terminal: bool
) -> int:
    async with open_cluster(cluster) as opened:
        job = await _running(*await opened.find([reference]))
        if terminal or stdin:
            return await job.attend(words, place=place, terminal=terminal)
        ran = await job.exec(words, place=place, sink=_write)
        sys.stderr.buffer.write(ran.stderr)
        sys.stderr.flush()
        return ran.code


def _write(data: bytes) -> None:
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


async def _running(job: Job) -> Job:
    """The job as it is now, for what is known may be old; of an array it has to be one task."""
    record = await job.status()
    if record.tasks is not None:
        first = f"{job.reference}_{min(record.tasks.numbers)}"
        raise UsageError(f"job {job.reference} is an array", fix=f"Name one of its tasks, as {first}.")
    return job


@click.command(
    cls=GroupedCommand,
    epilog=examples(
        "towline shell train",
        "towline shell --rank 3 train",
        "towline shell --gpus 1 --image nvcr.io/nvidia/pytorch:24.07-py3 --time 2h",
    ),
    context_settings=CONTEXT,
)
@_where
@file_option
@spec_options
@cluster_option
@click.argument("job", required=False, metavar="[JOB]")
def shell(
    *, job: str | None, role: str, rank: int | None, node: str, secrets: bool, cluster: str | None, **values: Any
) -> None:
    """Open a shell inside a running job, or, without JOB, in an allocation of its own.

    Inside a job it is a step beside one of its ranks, in its container. An allocation takes the options of
    `towline run`; it ends when the shell does, two minutes after this program or its connection has died, and at its
    walltime. The exit status is the shell's.
    """
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UsageError("a shell needs a terminal", fix="Run commands in a job by `towline exec JOB -- CMD`.")
    place = _place(role, rank, node, secrets=secrets)
    if job:
        if given := [name for name, value in values.items() if value not in (None, False, (), "")]:
            option = f"--{given[0].replace('_', '-')}"
            raise UsageError(f"{option} is for an allocation, and {job} has one", fix="Leave out the job or it.")
        status = run_loop(_shell(job, cluster, place))
    else:
        from towline.cli.allocation import allocate

        status = run_loop(allocate(values, cluster, place))
    if status:
        raise Ended(status)


async def _shell(reference: str, cluster: str | None, place: Place) -> int:
    async with open_cluster(cluster) as opened:
        job = await _running(*await opened.find([reference]))
        return await job.attend(place=place)


@click.command(epilog=examples("towline gpus train", "watch towline gpus train"), context_settings=CONTEXT)
@jobs_argument
@cluster_option
@json_option
def gpus(*, jobs: tuple[str, ...], cluster: str | None, as_json: bool) -> None:
    """Show what every GPU of running jobs does now, on all their nodes: busy, memory, temperature and power.

    The numbers are nvidia-smi's.
    """
    run_loop(_gpus(jobs, cluster, as_json=as_json))


async def _gpus(references: tuple[str, ...], cluster: str | None, *, as_json: bool) -> None:
    async with open_cluster(cluster) as opened:
        found = [(job.reference, await (await _running(job)).gpus()) for job in await opened.find(references)]
    if as_json:
        print_document({"gpus": [{"job_id": job, **dataclasses.asdict(gpu)} for job, all_ in found for gpu in all_]})
        return
    rows = [_row(job, gpu) for job, all_ in found for gpu in all_]
    header = ("JOB", "NODE", "GPU", "MODEL", "BUSY", "MEMORY", "TEMPERATURE", "POWER")
    print(table(header, rows, width=width_of(sys.stdout)), end="")


def _row(job: str, gpu: GpuReading) -> tuple[str, ...]:
    used, total = gpu.memory_used, gpu.memory_total
    memory = "-" if used is None or total is None else f"{used / 1024:.1f}/{total / 1024:.1f} GiB"
    heat, power = _with_unit(gpu.temperature, " °C"), _with_unit(gpu.power, " W")
    return (job, gpu.node, gpu.index, gpu.name, _with_unit(gpu.utilization, " %"), memory, heat, power)


def _with_unit(number: float | None, unit: str) -> str:
    return "-" if number is None else f"{number:.0f}{unit}"
