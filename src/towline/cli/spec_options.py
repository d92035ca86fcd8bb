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
        pairs: whether each value is NAME=VALUE and the field a table.
    """

    flag: str
    field: str
    help: str
    metavar: str = ""
    number: bool = False
    many: bool = False
    pairs: bool = False

    @property
    def parameter(self) -> str:
        """The name click knows the value by."""
        return self.flag.removeprefix("--").replace("-", "_")


GROUPS: dict[str, tuple[SpecOption, ...]] = {
    "Job": (
        SpecOption("--image", "image", "Image: a .sqsh path on the cluster or a registry reference.", "IMAGE"),
        SpecOption("--name", "name", "Name of the job; made from the command when not given.", "NAME"),
        SpecOption("--shell", "shell", "Shell text to run instead of a command.", "TEXT"),
        SpecOption(
            "--env",
            "env",
            "Variable of the environment, taken as it is (not for secrets).",
            "NAME=VALUE",
            many=True,
            pairs=True,
        ),
        SpecOption(
            "--secret",
            "secrets",
            "Secret variable, from the variable of that name or from env:NAME, file:PATH, keyring or prompt.",
            "NAME[=FROM]",
            many=True,
        ),
        SpecOption("--mount", "mounts", "Path of the cluster that the container sees.", "SRC[:DST[:ro]]", many=True),
        SpecOption("--launch", "launch", "Start once per node, once per GPU, or as MPI ranks.", "node|gpu|mpi"),
        SpecOption("--log-per", "log_per", "Log files for the whole job, each node or each rank.", "job|node|rank"),
        SpecOption("--code", "code", "Working tree of this machine that the job starts in.", "DIR"),
        SpecOption("--workdir", "workdir", "Working directory in the container.", "DIR"),
        SpecOption("--mount-home", "mount_home", "Mount the home directory in the container."),
        SpecOption("--writable", "container.writable", "Whether the container can be written.", "yes|no"),
        SpecOption("--remap-root", "container.remap_root", "Whether to be root in the container.", "yes|no"),
        SpecOption("--entrypoint", "container.entrypoint", "Whether the image's entrypoint is run.", "yes|no"),
        SpecOption("--container-name", "container.name", "Name of the container, for other steps.", "NAME"),
        SpecOption("--image-import", "image_import", "Make a file of the image first, or not.", "always|never"),
        SpecOption("--input", "inputs", "Data that the container sees at TARGET.", "TARGET=SRC", many=True, pairs=True),
        SpecOption(
            "--fetch", "fetch", "Have the job bring a small input itself.", "TARGET=in-job", many=True, pairs=True
        ),
        SpecOption("--output", "outputs", "Where a result shall go.", "PATH=DEST", many=True, pairs=True),
        SpecOption("--network", "network.name", "Network whose datasets are given, for example cosmos-rl.", "NAME"),
        SpecOption("--dataset", "network.datasets", "Root of a dataset.", "SPLIT=ROOT", many=True, pairs=True),
        SpecOption("--specs", "network.specs", "Specification of the network, which datasets fill.", "FILE"),
        SpecOption("--label", "labels", "A name and text of your own.", "NAME=TEXT", many=True, pairs=True),
    ),
    "Ending and starting again": (
        SpecOption("--status-decides", "status_decides", "FAILURE as the last word in status.json fails the job."),
        SpecOption("--restart", "restart", "Start again after node faults and preemption, or not.", "on-fault|never"),
        SpecOption("--retries", "retries", "Most new starts that faults may cost.", "N", number=True),
        SpecOption("--hang-after", "hang_after", "Start again when logs and GPUs stood still so long.", "TIME"),
        SpecOption("--signal", "signal", "Signal to every rank before the time is over.", "NAME"),
        SpecOption("--grace", "grace", "How long before, for example 5m.", "TIME"),
        SpecOption(
            "--checkpoints",
            "resume.checkpoints",
            "Files that show progress by their growth, relative to $TOWLINE_RESULTS_DIR.",
            "GLOB",
        ),
        SpecOption("--resume-arg", "resume.args", "Word added to the command on a new start.", "WORD", many=True),
        SpecOption("--resume-env", "resume.env", "Variable on a new start.", "NAME=VALUE", many=True, pairs=True),
        SpecOption("--resume-code", "resume.exit_code", "Exit code that asks for a new start.", "N", number=True),
    ),
    "Resources": (
        SpecOption("--nodes", "resources.nodes", "Number of nodes.", "N", number=True),
        SpecOption(
            "--gpus", "resources.gpus", "GPUs in total, spread over nodes as the site has them.", "N", number=True
        ),
        SpecOption("--gpus-per-node", "resources.gpus_per_node", "GPUs on each node.", "N", number=True),
        SpecOption("--gpu-type", "resources.gpu_type", "Type of the GPUs, as the site names it.", "TYPE"),
        SpecOption("--tasks-per-node", "resources.tasks_per_node", "Tasks on each node.", "N", number=True),
        SpecOption("--cpus-per-task", "resources.cpus_per_task", "CPUs of each task.", "N", number=True),
        SpecOption("--cpus-per-gpu", "resources.cpus_per_gpu", "CPUs for each GPU.", "N", number=True),
        SpecOption("--memory", "resources.memory", "Memory on each node, for example 64G, or all.", "SIZE"),
        SpecOption("--memory-per-cpu", "resources.memory_per_cpu", "Memory for each CPU.", "SIZE"),
        SpecOption("--memory-per-gpu", "resources.memory_per_gpu", "Memory for each GPU.", "SIZE"),
        SpecOption("--time", "resources.time", "Walltime, for example 30m, 4h or 1-00:00:00.", "TIME"),
        SpecOption("--exclusive", "resources.exclusive", "Share the nodes with no other job."),
        SpecOption("--licenses", "resources.licenses", "Licenses, as the site names them.", "NAME[:N],…"),
    ),
    "Slurm": (
        SpecOption("--partition", "partition", "Partition, or several with commas.", "NAME"),
        SpecOption("--account", "account", "Account that is charged.", "NAME"),
        SpecOption("--qos", "qos", "Quality of service.", "NAME"),
        SpecOption("--reservation", "reservation", "Reservation to run in.", "NAME"),
        SpecOption("--constraint", "constraint", "Features the nodes must have.", "LIST"),
        SpecOption("--nodelist", "nodelist", "Nodes that must be used.", "NODES"),
        SpecOption("--exclude", "exclude", "Nodes that must not be used.", "NODES"),
        SpecOption("--begin", "begin", "Start not before, for example +2h or 2026-03-01T08:00.", "TIME"),
        SpecOption("--deadline", "deadline", "Be removed when it cannot end by then.", "TIME"),
        SpecOption("--mail-user", "mail.user", "Whom Slurm writes to.", "ADDRESS"),
        SpecOption("--mail-type", "mail.types", "What about; END,FAIL when not given.", "LIST"),
        SpecOption("--comment", "comment", "Comment for the site and for yourself.", "TEXT"),
        SpecOption("--sbatch", "sbatch", "Further option of sbatch, without --.", "NAME[=VALUE]", many=True),
    ),
    "Many at once": (SpecOption("--array", "array", "One task for each number; %M runs M at a time.", "0-99[%M]"),),
    "Other jobs first (each by id, Slurm id or name)": (
        SpecOption("--afterok", "depends_on", "Start once that job has succeeded.", "JOB", many=True),
        SpecOption("--afterany", "depends_on", "Start once that job has ended.", "JOB", many=True),
        SpecOption("--afternotok", "depends_on", "Start once that job has ended otherwise.", "JOB", many=True),
        SpecOption("--after", "depends_on", "Start once that job began or was cancelled.", "JOB", many=True),
        SpecOption("--aftercorr", "depends_on", "Start each task after the same task of that array.", "JOB", many=True),
        SpecOption("--singleton", "depends_on", "Start once every other job of this one's name has ended."),
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
        UsageError: a value of a table such as `--env` is not NAME=VALUE.
    """
    fields: dict[str, Any] = {}
    for option in (option for group in GROUPS.values() for option in group):
        given = values.get(option.parameter)
        if given is None or given is False or given == ():
            continue
        table, _, name = option.field.rpartition(".")
        target = fields.setdefault(table, {}) if table else fields
        if name == "depends_on":
            target[name] = [*target.get(name, ()), *_dependencies(option, given)]
        else:
            target[name] = _value(option, given)
    return fields


def _value(option: SpecOption, given: Any) -> Any:
    if option.field == "secrets":
        from towline.engine.submitting.secret_sources import Source

        return tuple(Source.parse(text).name for text in given)
    return _assignments(option, given) if option.pairs else given


def _dependencies(option: SpecOption, given: Any) -> list[dict[str, str]]:
    """Several flags fill this field: each says in its name what is waited for."""
    return [{"kind": option.parameter, "job": job} for job in given] if option.many else [{"kind": option.parameter}]


def _assignments(option: SpecOption, given: Any) -> dict[str, str]:
    """Of a variable the last word counts, as in a shell; of data each word is meant, and none may be lost."""
    pairs = [_assignment(option, text) for text in given]
    found = dict(pairs)
    if option.field in _MEANT_EACH and (twice := [f"{name}={value}" for name, value in pairs if found[name] != value]):
        name = twice[0].partition("=")[0]
        raise UsageError(
            f"{option.flag} is given twice for {name}: {twice[0]} and {name}={found[name]}",
            fix="Give it once for each name.",
        )
    return found


_MEANT_EACH = frozenset({"inputs", "outputs", "network.datasets", "fetch"})


def _assignment(option: SpecOption, text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals:
        taken = "; nothing is taken over from this machine's environment by name" if "env" in option.field else ""
        raise UsageError(
            f"{option.flag} {text!r} gives no value",
            fix=f"Write {option.flag} {text or 'NAME'}={option.metavar.partition('=')[2]}{taken}.",
        )
    return name, value


def _click_option(option: SpecOption) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    if not option.metavar:
        return click.option(option.flag, option.parameter, is_flag=True, help=option.help)
    kind = click.INT if option.number else click.STRING
    return click.option(
        option.flag, option.parameter, metavar=option.metavar, type=kind, multiple=option.many, help=option.help
    )
