"""The options of `towline run` that describe the job: each flag is declared once, with the field it fills."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import click

from towline.models.errors import UsageError


@dataclass(frozen=True)
class SpecOption:
    """One flag.

    Attributes:
        flag: the long option.
        field: the field of `JobSpec`, with a dot for one of its resources.
        help: one sentence.
        metavar: the value's name in help; empty for a switch.
        number: whether the value is a whole number.
        many: whether the flag may be given several times.
    """

    flag: str
    field: str
    help: str
    metavar: str = ""
    number: bool = False
    many: bool = False

    @property
    def parameter(self) -> str:
        """The name click knows the value by."""
        return self.flag.removeprefix("--").replace("-", "_")


GROUPS: dict[str, tuple[SpecOption, ...]] = {
    "Job": (
        SpecOption("--image", "image", "Image: a .sqsh path on the cluster or a registry reference.", "IMAGE"),
        SpecOption("--name", "name", "Name of the job; made from the command when not given.", "NAME"),
        SpecOption("--shell", "shell", "Shell text to run instead of a command.", "TEXT"),
        SpecOption("--env", "env", "Variable of the job's environment (not for secrets).", "NAME=VALUE", many=True),
        SpecOption("--mount", "mounts", "Path of the cluster that the container sees.", "SRC[:DST[:ro]]", many=True),
        SpecOption("--workdir", "workdir", "Working directory in the container.", "DIR"),
        SpecOption("--mount-home", "mount_home", "Mount the home directory in the container."),
        SpecOption("--restart", "restart", "Start again after node faults and preemption, or not.", "on-fault|never"),
    ),
    "Resources": (
        SpecOption("--nodes", "resources.nodes", "Number of nodes.", "N", number=True),
        SpecOption("--gpus-per-node", "resources.gpus_per_node", "GPUs on each node.", "N", number=True),
        SpecOption("--gpu-type", "resources.gpu_type", "Type of the GPUs, as the site names it.", "TYPE"),
        SpecOption("--tasks-per-node", "resources.tasks_per_node", "Tasks on each node.", "N", number=True),
        SpecOption("--cpus-per-task", "resources.cpus_per_task", "CPUs of each task.", "N", number=True),
        SpecOption("--memory", "resources.memory", "Memory on each node, for example 64G.", "SIZE"),
        SpecOption("--time", "resources.time", "Walltime, for example 30m, 4h or 1-00:00:00.", "TIME"),
        SpecOption("--exclusive", "resources.exclusive", "Share the nodes with no other job."),
    ),
    "Slurm": (
        SpecOption("--partition", "partition", "Partition, or several with commas.", "NAME"),
        SpecOption("--account", "account", "Account that is charged.", "NAME"),
        SpecOption("--qos", "qos", "Quality of service.", "NAME"),
        SpecOption("--reservation", "reservation", "Reservation to run in.", "NAME"),
        SpecOption("--constraint", "constraint", "Features the nodes must have.", "LIST"),
        SpecOption("--nodelist", "nodelist", "Nodes that must be used.", "NODES"),
        SpecOption("--exclude", "exclude", "Nodes that must not be used.", "NODES"),
        SpecOption("--comment", "comment", "Comment for the site and for yourself.", "TEXT"),
    ),
}
"""Heading in the help → its options."""


def spec_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add every option that describes the job to a command."""
    for option in reversed([option for group in GROUPS.values() for option in group]):
        function = _click_option(option)(function)
    return function


def spec_fields(values: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of `JobSpec` that the flags give; flags that were not given are left out.

    Raises:
        UsageError: an `--env` is not NAME=VALUE.
    """
    fields: dict[str, Any] = {}
    for option in (option for group in GROUPS.values() for option in group):
        given = values.get(option.parameter)
        if given is None or given is False or given == ():
            continue
        table, _, name = option.field.rpartition(".")
        target = fields.setdefault(table, {}) if table else fields
        target[name] = _value(option, given)
    return fields


def _value(option: SpecOption, given: Any) -> Any:
    if option.field == "env":
        return dict(_assignment(text) for text in given)
    return given


def _assignment(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals:
        raise UsageError(
            f"--env {text!r} gives no value",
            fix=f"Write --env {text}=VALUE; nothing is taken over from this machine's environment by name.",
        )
    return name, value


def _click_option(option: SpecOption) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    if not option.metavar:
        return click.option(option.flag, option.parameter, is_flag=True, help=option.help)
    kind = click.INT if option.number else click.STRING
    return click.option(
        option.flag, option.parameter, metavar=option.metavar, type=kind, multiple=option.many, help=option.help
    )
