"""`towline plan`: what a submission would do, with every check's verdict."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import click

from towline.cli.documents import plan_as_dict, print_document, towline_exit
from towline.cli.doors import Cluster, open_cluster
from towline.cli.guard import Ended
from towline.cli.loop import run as run_loop
from towline.cli.options import CONTEXT, cluster_option, examples, json_option
from towline.cli.spec_input import file_option, read_spec
from towline.cli.spec_options import GROUPS, spec_options
from towline.models.errors import PlanRefused

if TYPE_CHECKING:
    from towline.models.spec import JobSpec

_EXAMPLES = examples(
    "towline plan --gpus 16 --time 4h -- torchrun train.py",
    "towline plan -f job.yaml --json",
)


class GroupedCommand(click.Command):
    """A command whose many options appear in groups."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: D102
        headings = {option.parameter: heading for heading, group in GROUPS.items() for option in group}
        sections: dict[str, list[tuple[str, str]]] = {heading: [] for heading in (*GROUPS, "Options")}
        for parameter in self.get_params(ctx):
            if isinstance(parameter, click.Argument):
                continue
            if record := parameter.get_help_record(ctx):
                sections[headings.get(parameter.name or "", "Options")].append(record)
        for heading, records in sections.items():
            with formatter.section(heading):
                formatter.write_dl(records)


def job_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Everything that describes a job: a file, the options, and the command at the end; the cluster and `--json`."""
    command = click.argument("command", nargs=-1, type=click.UNPROCESSED, metavar="[--] CMD [ARG]...")
    return file_option(spec_options(cluster_option(json_option(command(function)))))


@click.command(cls=GroupedCommand, epilog=_EXAMPLES, context_settings={**CONTEXT, "allow_interspersed_args": False})
@job_options
def plan(command: tuple[str, ...], **values: Any) -> None:
    """Show what `towline run` would do with the same arguments; nothing is changed.

    Every check with its verdict, when the job would start, what it may use, its files, the batch script byte for byte
    and the command. The exit status is 65 when a check fails.
    """
    spec = read_spec(command, values, values["cluster"])
    secrets = look_ahead(spec, values["secret"])
    status = run_loop(_plan(spec, values["cluster"], secrets, as_json=values["as_json"]))
    if status:
        raise Ended(status)


async def _plan(spec: JobSpec, cluster: str | None, secrets: dict[str, str | bytes], *, as_json: bool) -> int:
    async with open_cluster(cluster) as opened:
        return await show_plan(opened, spec, secrets, as_json=as_json)


def look_ahead(spec: JobSpec, secrets: Sequence[str]) -> dict[str, str | bytes]:
    """The values of secrets that can be known without asking anybody; they are kept out of what is shown."""
    if not spec.secrets:
        return {}
    from towline.engine.submitting import secret_sources as engine

    sources = engine.sources_for(spec, secrets)
    values = engine.look_ahead(spec, sources, os.environ)
    engine.drop_variables(sources, os.environ)
    return values


async def show_plan(cluster: Cluster, spec: JobSpec, secrets: dict[str, str | bytes], *, as_json: bool) -> int:
    """Print the plan of a job; the result is the exit status."""
    from towline.cli.dry_run import plan_text

    found = await cluster.plan(spec, look=True, secrets=secrets)
    status = PlanRefused.exit_status if found.failures else 0
    if as_json:
        print_document({"plan": plan_as_dict(found), "exit": towline_exit(status)})
    else:
        print(plan_text(found), end="")
    return status
