"""The batch script: a head of directives that a person can read, and a body that hands over to the supervisor."""

from __future__ import annotations

import functools
import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from importlib import resources
from typing import TYPE_CHECKING, Literal

from towline.models.values import check_token, format_walltime

if TYPE_CHECKING:
    from jinja2 import Template

GpuRequest = Literal["gres", "gpus-per-node", "constraint"]
"""How a site wants GPUs to be asked for: `--gres=gpu:[TYPE:]N`, `--gpus-per-node=[TYPE:]N`, or `--gres=gpu:N` with the
type as a feature in `--constraint`."""

Directive = tuple[str, str | None]
"""Name and value of one option; None for an option that takes none."""

COMMENT_WIDTH = 110
"""Characters of the command line that the head shows."""

_PLAIN = re.compile(r"[A-Za-z0-9_.+@:/=,%\[\]&|*()~^{}-]+")
_HET_WORDS = re.compile(r"(het|pack)(?=job)", re.IGNORECASE)
_NICE = re.compile(r"nice=-?\d+")
_FEATURE = re.compile(r"[A-Za-z0-9_.:*-]+(?:&[A-Za-z0-9_.:*-]+)*")
_GPU_TYPE = re.compile(r"[A-Za-z0-9_.-]+")


@dataclass(frozen=True)
class BatchJob:
    """Everything that stands in one attempt's batch script; None and empty values leave the site's default.

    Attributes:
        directory: absolute path of the job directory.
        job_id: Towline's id.
        token: Slurm's job name, by which a lost submission is found again.
        command_line: the command as a person would type it, for the head's comment.
        attempt: number of the attempt, from 1.
        array: numbers of the tasks; empty for a job that is no array.
        nodes: number of nodes.
        tasks_per_node: tasks on each node.
        gpus_per_node: GPUs on each node, 0 for none.
        gpu_type: type in the site's gres, empty for any.
        gpu_request: how the site wants GPUs to be asked for.
        cpus_per_task: CPUs of each task.
        memory: MiB on each node, or `all` for what the nodes have.
        memory_per_cpu: MiB for each CPU.
        time: walltime in seconds, rounded up to whole minutes.
        exclusive: whether no other job shares the nodes.
        licenses: as the site names them.
        partition: one or several partitions.
        account, qos, reservation, constraint, nodelist, exclude: passed on as they are.
        comment: any single line; sites may read policy from it.
        begin, deadline: times in Slurm's own forms.
        signal: name and seconds of the signal to the ranks before the walltime ends.
        mail_user, mail_types: whom Slurm writes to, and about what.
        dependency: what `--dependency` takes; Slurm ends the job when that can never come true.
        requeue: whether Slurm may start the job again after node faults and preemption.
        export_all: whether the environment of the submission reaches the job; else only what the job's own files say.
        options: further options, name → value; `gres` among them joins the GPUs.
        others: the other components of a heterogeneous job; of these counts what they ask for and where.
    """

    directory: str
    job_id: str
    token: str
    command_line: str = ""
    attempt: int = 1
    array: str = ""
    nodes: int = 1
    tasks_per_node: int = 1
    gpus_per_node: int = 0
    gpu_type: str = ""
    gpu_request: GpuRequest = "gres"
    cpus_per_task: int | None = None
    memory: int | Literal["all"] | None = None
    memory_per_cpu: int | None = None
    time: int | None = None
    exclusive: bool = False
    licenses: tuple[str, ...] = ()
    partition: tuple[str, ...] = ()
    account: str = ""
    qos: str = ""
    reservation: str = ""
    constraint: str = ""
    nodelist: str = ""
    exclude: str = ""
    comment: str = ""
    begin: str = ""
    deadline: str = ""
    signal: tuple[str, int] | None = None
    mail_user: str = ""
    mail_types: tuple[str, ...] = ()
    dependency: str = ""
    requeue: bool = True
    export_all: bool = False
    options: Mapping[str, str] = field(default_factory=dict[str, str])
    others: tuple[BatchJob, ...] = ()


def render_batch(job: BatchJob) -> str:
    """The batch script of one attempt.

    Raises:
        ValueError: a value cannot stand in a directive; the sentence names the option.
    """
    others = [component_directives(each) for each in job.others]
    return _template().render(job=job, directives=directives(job), others=others)


def directives(job: BatchJob) -> tuple[Directive, ...]:
    """The options of the `#SBATCH` lines in the order in which they are written, values not yet quoted.

    Raises:
        ValueError: a value cannot stand in a directive; the sentence names the option.
    """
    parts = (_size, _where, _when, _files, _rules, _further)
    return tuple(_checked(option) for part in parts for option in part(job))


def component_directives(job: BatchJob) -> tuple[Directive, ...]:
    """The options of a further component of a heterogeneous job: what it needs, and where.

    Name, files, dependency and environment are the first component's (sbatch(1), heterogeneous_jobs.html).

    Raises:
        ValueError: a value cannot stand in a directive; the sentence names the option.
    """
    shared = ("job-name", "comment")
    options = (option for part in (_size, _where, _requeue) for option in part(job) if option[0] not in shared)
    return tuple(_checked(option) for option in options)


def _size(job: BatchJob) -> Iterator[Directive]:
    if job.array:
        yield "array", job.array
    yield "nodes", str(job.nodes)
    yield "ntasks-per-node", str(job.tasks_per_node)
    yield from _generic(job)
    if job.cpus_per_task is not None:
        yield "cpus-per-task", str(job.cpus_per_task)
    if job.nodes > 1:
        yield "wait-all-nodes", "1"
    if job.memory is not None:
        yield "mem", "0" if job.memory == "all" else f"{job.memory}M"
    if job.memory_per_cpu is not None:
        yield "mem-per-cpu", f"{job.memory_per_cpu}M"
    if job.exclusive:
        yield "exclusive", None
    if job.licenses:
        yield "licenses", ",".join(job.licenses)
    if job.time is not None:
        yield "time", format_walltime(job.time)


def _generic(job: BatchJob) -> Iterator[Directive]:
    """GPUs and other generic resources; a second `--gres` would take the place of the first, so they share one."""
    if job.gpu_type and not _GPU_TYPE.fullmatch(job.gpu_type):
        raise ValueError(f"gpu type: {job.gpu_type!r} is not a type of GPU (letters, digits and ._-)")
    typed = f"{job.gpu_type}:" if job.gpu_type and job.gpu_request != "constraint" else ""
    if job.gpus_per_node and job.gpu_request == "gpus-per-node":
        yield "gpus-per-node", f"{typed}{job.gpus_per_node}"
    gpus = f"gpu:{typed}{job.gpus_per_node}" if job.gpus_per_node and job.gpu_request != "gpus-per-node" else ""
    if wanted := ",".join(filter(None, (gpus, job.options.get("gres", "")))):
        yield "gres", wanted


def _constraint(job: BatchJob) -> str:
    """The nodes' features, with the GPU's type among them where a site wants it so."""
    if job.gpu_request != "constraint" or not job.gpu_type or not job.gpus_per_node:
        return job.constraint
    if not job.constraint:
        return job.gpu_type
    return (
        f"{job.gpu_type}&{job.constraint}"
        if _FEATURE.fullmatch(job.constraint)
        else f"{job.gpu_type}&({job.constraint})"
    )


def _where(job: BatchJob) -> Iterator[Directive]:
    yield "job-name", job.token
    yield from _given(
        ("account", job.account),
        ("partition", ",".join(job.partition)),
        ("qos", job.qos),
        ("reservation", job.reservation),
        ("constraint", _constraint(job)),
        ("nodelist", job.nodelist),
        ("exclude", job.exclude),
        ("comment", job.comment),
    )


def _when(job: BatchJob) -> Iterator[Directive]:
    yield from _given(("begin", job.begin), ("deadline", job.deadline))
    if job.signal:
        yield "signal", "{}@{}".format(*job.signal)
    if job.dependency:
        yield "dependency", job.dependency
        yield "kill-on-invalid-dep", "yes"


def _files(job: BatchJob) -> Iterator[Directive]:
    logs = f"{job.directory}/attempts/{job.attempt}".replace("%", "%%")
    yield "chdir", job.directory
    task = "-%a" if job.array else ""
    yield "output", f"{logs}/main{task}.out"
    yield "error", f"{logs}/main{task}.err"
    yield "open-mode", "append"


def _rules(job: BatchJob) -> Iterator[Directive]:
    yield from _given(("mail-user", job.mail_user), ("mail-type", ",".join(job.mail_types)))
    yield from _requeue(job)
    yield "export", "ALL" if job.export_all else "NONE"


def _requeue(job: BatchJob) -> Iterator[Directive]:
    yield ("requeue" if job.requeue else "no-requeue"), None


def _further(job: BatchJob) -> Iterator[Directive]:
    for name, value in job.options.items():
        if name != "gres":
            yield name, value or None


def _given(*options: tuple[str, str]) -> Iterator[Directive]:
    return ((name, value) for name, value in options if value)


_FREE_TEXT = frozenset({"comment"})
_PATHS = frozenset({"chdir", "output", "error"})
_NODE_NAMES = frozenset({"nodelist", "exclude"})


def _checked(option: Directive) -> Directive:
    """The option itself if sbatch will read from the script exactly the value that is meant."""
    name, value = option
    if value is None:
        return option
    try:
        _check_printable(value)
        if name in _PATHS:
            _check_path(value)
        elif name not in _FREE_TEXT and not _NICE.fullmatch(f"{name}={value}"):
            check_token(value)
        if name in _NODE_NAMES and "/" in value:
            raise ValueError(f"{value!r} would be read by sbatch as the name of a file that lists nodes")
    except ValueError as error:
        raise ValueError(f"--{name}: {error}") from None
    return option


def _check_printable(value: str) -> None:
    value.encode()
    if any(ord(char) < 32 or ord(char) == 127 for char in value):
        raise ValueError(f"{value!r} must be one line without control characters")


def _check_path(value: str) -> None:
    if not value.startswith("/"):
        raise ValueError(f"{value!r} must be an absolute path")
    if "\\" in value:
        raise ValueError(f"{value!r} holds a backslash, with which Slurm stops reading % in file names")


def quote_directive(value: object) -> str:
    r"""The value as it must stand in an `#SBATCH` line.

    sbatch (`get_argument` in its opt.c, the same rules from 20.11 to 25.11) groups characters by double quotes and
    takes the character behind a backslash as it is; outside quotes `#` would begin a comment. 20.11 blanks out
    `hetjob` and `packjob` wherever they stand in the line, so a backslash parts these words.
    """
    text = str(value)
    if not _PLAIN.fullmatch(text):
        text = '"' + re.sub(r'(["\\])', r"\\\1", text) + '"'
    return _HET_WORDS.sub(r"\1\\", text)


def one_line(value: object) -> str:
    """The value as one printable line of a comment, cut where it gets long."""
    text = " ".join("".join(char if char.isprintable() else " " for char in str(value)).split())
    return text if len(text) <= COMMENT_WIDTH else text[: COMMENT_WIDTH - 1] + "…"


def quote_shell(value: object) -> str:
    """The value as one word of POSIX sh."""
    return shlex.quote(str(value))


@functools.cache
def _template() -> Template:
    from jinja2 import Environment, StrictUndefined

    # No HTML is made here; every value in the template goes through one of the three filters.
    environment = Environment(undefined=StrictUndefined, autoescape=False, trim_blocks=True, keep_trailing_newline=True)  # noqa: S701
    environment.filters.update(directive=quote_directive, comment=one_line, shell=quote_shell)
    source = (resources.files("towline.slurm") / "templates" / "batch.sh.j2").read_text(encoding="utf-8")
    return environment.from_string(source)
