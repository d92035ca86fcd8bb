"""The batch script: a head of directives that a person can read, and a body that hands over to the supervisor."""

from __future__ import annotations

import functools
import re
import shlex
from dataclasses import dataclass
from importlib import resources
from typing import TYPE_CHECKING, Literal

from towline.models.values import check_token, format_walltime

if TYPE_CHECKING:
    from jinja2 import Template

GpuRequest = Literal["gres", "gpus-per-node"]
"""How a site wants GPUs to be asked for: `--gres=gpu:[TYPE:]N` or `--gpus-per-node=[TYPE:]N`."""

_PLAIN = re.compile(r"[A-Za-z0-9_.+@:/=,%\[\]&|*()~^{}-]+")
_HET_WORDS = re.compile(r"(het|pack)(job)", re.IGNORECASE)
_MAX_COMMAND = 160


@dataclass(frozen=True)
class BatchJob:
    """Everything that stands in one attempt's batch script; None and empty values leave the site's default.

    Attributes:
        directory: absolute path of the job directory.
        job_id: Towline's id.
        token: Slurm's job name, by which a lost submission is found again.
        command_line: the command as a person would type it, for the head's comment.
        attempt: number of the attempt, from 1.
        nodes: number of nodes.
        tasks_per_node: tasks on each node.
        gpus_per_node: GPUs on each node, 0 for none.
        gpu_type: type in the site's gres, empty for any.
        gpu_request: how the site wants GPUs to be asked for.
        cpus_per_task: CPUs of each task.
        memory: MiB on each node.
        time: walltime in seconds, rounded up to whole minutes.
        exclusive: whether no other job shares the nodes.
        partition: one or several partitions.
        account, qos, reservation, constraint, nodelist, exclude: passed on as they are.
        comment: any single line; sites may read policy from it.
        requeue: whether Slurm may start the job again after node faults and preemption.
    """

    directory: str
    job_id: str
    token: str
    command_line: str = ""
    attempt: int = 1
    nodes: int = 1
    tasks_per_node: int = 1
    gpus_per_node: int = 0
    gpu_type: str = ""
    gpu_request: GpuRequest = "gres"
    cpus_per_task: int | None = None
    memory: int | None = None
    time: int | None = None
    exclusive: bool = False
    partition: tuple[str, ...] = ()
    account: str = ""
    qos: str = ""
    reservation: str = ""
    constraint: str = ""
    nodelist: str = ""
    exclude: str = ""
    comment: str = ""
    requeue: bool = True


def render_batch(job: BatchJob) -> str:
    """The batch script of one attempt.

    Raises:
        ValueError: a value cannot stand in a directive; the sentence names the option.
    """
    return _template().render(job=job, directives=directives(job), command=_one_line(job.command_line))


def directives(job: BatchJob) -> tuple[str, ...]:
    """The options of the `#SBATCH` lines, in the order in which they are written.

    Raises:
        ValueError: a value cannot stand in a directive; the sentence names the option.
    """
    raise NotImplementedError


@functools.cache
def _template() -> Template:
    raise NotImplementedError


def _one_line(text: str) -> str:
    raise NotImplementedError
