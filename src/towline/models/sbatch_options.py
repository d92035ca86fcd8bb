"""Raw `sbatch` options in a spec: which may be given, and why the others may not.

A directive that Towline does not write itself is harmless only if it changes neither which job is made, nor where its
files are, nor what its steps inherit. Names and values are those of sbatch(1), 20.11 to 25.11.
"""

from __future__ import annotations

import difflib
import re
from typing import cast

from towline.models.values import check_token

_PYXIS = re.compile(r"(no-)?container-")
_NAME = re.compile(r"[a-z][a-z0-9-]*")

WITH_VALUE = frozenset(
    {
        "acctg-freq", "batch", "bb", "core-spec", "cores-per-socket", "cpu-freq", "delay-boot", "distribution",
        "extra-node-info", "gpu-freq", "gres", "gres-flags", "hint", "mcs-label", "mem-bind", "mincpus", "network",
        "power", "prefer", "priority", "profile", "segment", "sockets-per-node", "switches", "thread-spec",
        "threads-per-core", "time-min", "tmp", "wckey",
    }
)  # fmt: skip
"""Options that take a value and leave Towline alone."""

WITHOUT_VALUE = frozenset({"contiguous", "hold", "overcommit", "reboot", "spread-job", "use-min-nodes"})
"""Options without a value that leave Towline alone."""

EITHER = frozenset({"nice", "oversubscribe", "propagate"})
"""Options whose value may be left out."""

FIELDS = {
    "account": "account",
    "array": "array",
    "begin": "begin",
    "comment": "comment",
    "constraint": "constraint",
    "cpus-per-gpu": "resources.cpus_per_gpu",
    "cpus-per-task": "resources.cpus_per_task",
    "deadline": "deadline",
    "dependency": "depends_on",
    "exclude": "exclude",
    "exclusive": "resources.exclusive",
    "gpus": "resources.gpus",
    "gpus-per-node": "resources.gpus_per_node",
    "job-name": "name",
    "licenses": "resources.licenses",
    "mail-type": "mail.types",
    "mail-user": "mail.user",
    "mem": "resources.memory",
    "mem-per-cpu": "resources.memory_per_cpu",
    "mem-per-gpu": "resources.memory_per_gpu",
    "no-requeue": "restart",
    "nodelist": "nodelist",
    "nodes": "resources.nodes",
    "ntasks": "resources.tasks_per_node",
    "ntasks-per-node": "resources.tasks_per_node",
    "partition": "partition",
    "qos": "qos",
    "requeue": "restart",
    "reservation": "reservation",
    "signal": "signal and grace",
    "time": "resources.time",
}
"""Options that a field of the spec stands for, so that checks and the step know of them."""

_OUTSIDE = "the files of a job lie in its directory, where its log is followed and its end is read"
_INHERITED = "every step would inherit it, and the one that starts your command would ask for other GPUs than the job"
_ANSWER = "the answer of sbatch is read for the job's id"
_LAYOUT = "the number of tasks on each node is fixed by resources.tasks_per_node, and the ranks are counted by it"
_IDENTITY = "the job's directory belongs to you, and another user's job could not use it"

BREAKING = {
    "bbf": "it names a file on the login host, which is not part of the job",
    "chdir": _OUTSIDE,
    "cluster-constraint": "a lost answer is looked up on one cluster only",
    "clusters": "a lost answer is looked up on one cluster only; make a profile for the other one",
    "container": "the command runs in the job's image",
    "error": _OUTSIDE,
    "export": "what reaches the steps is decided by the spec's env",
    "export-file": "what reaches the steps is decided by the spec's env",
    "extra": "a Slurm before 23.11 would take it for the beginning of extra-node-info",
    "get-user-env": "what reaches the steps is decided by the spec's env",
    "gid": _IDENTITY,
    "gpu-bind": _INHERITED,
    "gpus-per-socket": _INHERITED,
    "gpus-per-task": _INHERITED,
    "help": "it submits nothing",
    "ignore-pbs": "the script has no PBS lines",
    "input": "the batch script reads nothing from its standard input",
    "kill-on-invalid-dep": "a job that waits for what can never come would stay in the queue for ever",
    "no-kill": "a job that goes on without a node of its own cannot be told from one that runs",
    "nodefile": "it names a file on the login host, which is not part of the job; use nodelist",
    "ntasks-per-core": _LAYOUT,
    "ntasks-per-gpu": _LAYOUT,
    "ntasks-per-socket": _LAYOUT,
    "open-mode": "a job that starts again must not empty the log of its first start",
    "output": _OUTSIDE,
    "parsable": _ANSWER,
    "quiet": _ANSWER,
    "stepmgr": "the supervisor's look at its steps goes to the controller",
    "test-only": "it submits nothing; use towline plan",
    "tres-bind": _INHERITED,
    "tres-per-task": _INHERITED,
    "uid": _IDENTITY,
    "usage": "it submits nothing",
    "verbose": _ANSWER,
    "version": "it submits nothing",
    "wait": "sbatch would return only when the job has ended",
    "wait-all-nodes": "Towline waits for all nodes of a job with several",
    "wrap": "the batch script is Towline's",
}
"""Options that would break what Towline does, with the reason."""

IN_CONTAINER = "the batch script itself would run in the container; say it with image, mounts, workdir and their like"
"""Why Pyxis' own options, `container-image` and others, are refused."""

_KNOWN = WITH_VALUE | WITHOUT_VALUE | EITHER | FIELDS.keys() | BREAKING.keys()


def read_options(value: object) -> object:
    """Option → value, from lines such as `--switches=1@1:00:00` or `hold`, or from a table with true for no value."""
    if isinstance(value, str):
        value = [value]
    if isinstance(value, (list, tuple)):
        return dict(_line(str(item)) for item in cast("list[object]", value))
    if isinstance(value, dict):
        return {str(name): _plain(item) for name, item in cast("dict[object, object]", value).items()}
    return value


def is_known(name: str) -> bool:
    """Whether Towline has a verdict on the option."""
    return name in _KNOWN or bool(_PYXIS.match(name))


def check_option(name: str, value: str) -> None:
    """Return when the option may stand beside Towline's own; an empty value means that it is given without one.

    Raises:
        ValueError: it is refused, not known, or lacks its value; the sentence says why.
    """
    if not _NAME.fullmatch(name):
        raise ValueError(f"{name!r} is not the name of an option (small letters, digits and -)")
    if name in FIELDS:
        raise ValueError(f"{name}: write it as {FIELDS[name]}, which Towline checks and hands on to the step")
    if name in BREAKING or _PYXIS.match(name):
        raise ValueError(f"{name} cannot be given: {BREAKING.get(name, IN_CONTAINER)}")
    if not is_known(name):
        near = difflib.get_close_matches(name, sorted(_KNOWN), n=3)
        raise ValueError(
            f"{name}: Towline knows no such option of sbatch" + (f"; did you mean {' or '.join(near)}?" if near else "")
        )
    if bool(value) != (name in WITH_VALUE) and name not in EITHER:
        raise ValueError(f"{name} takes {'a' if name in WITH_VALUE else 'no'} value")
    _check_value(name, value)


def _check_value(name: str, value: str) -> None:
    if value and not (name == "nice" and re.fullmatch(r"-?\d+", value)):
        check_token(value)
    if name == "gres" and any(part.split(":")[0].lower().removeprefix("gres/") == "gpu" for part in value.split(",")):
        raise ValueError("gres: GPUs are asked for with resources.gpus or resources.gpus_per_node")


def _line(text: str) -> tuple[str, str]:
    name, _, value = text.strip().removeprefix("--").partition("=")
    return name, value


def _plain(value: object) -> object:
    """Values as YAML and TOML have them; `false` is no way to take an option away and stays an error."""
    if value is True or value is None:
        return ""
    return str(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else value
