"""What an error of sbatch means: never, later, or perhaps done.

The texts are those of Slurm's `slurm_errno.c`, of `sbatch` itself, and the limit names that the controller
puts in front of "Job violates accounting/QOS policy".
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum


class RefusalKind(str, Enum):
    """Whether the same request may succeed."""

    PERMANENT = "permanent"
    TEMPORARY = "temporary"
    AMBIGUOUS = "ambiguous"
    """The job may exist although an error was printed: look it up before sending it again."""


@dataclass(frozen=True)
class Refusal:
    """One error of sbatch, understood.

    Attributes:
        kind: whether the same request may succeed later.
        code: a stable word, for example `account`, `queue-full`, `controller-away`.
        said: Slurm's own lines, without the program's name.
        remedy: what to do, in one sentence.
    """

    kind: RefusalKind
    code: str
    said: str
    remedy: str


_P, _T, _A = RefusalKind.PERMANENT, RefusalKind.TEMPORARY, RefusalKind.AMBIGUOUS

# The first pattern that is found decides: what may have made a job comes before what surely did not, and the
# name of a limit before the general sentence that follows it.
_TABLE: tuple[tuple[str, RefusalKind, str, str], ...] = (
    (
        (
            r"socket timed out|timed out on send/recv|zero bytes were transmitted|(receive|send|shutdown) failure"
            r"|connection reset|broken pipe|transport endpoint|unexpected message received|insane message length"
        ),
        _A,
        "answer-lost",
        "The controller is slow and may have the job; ask again, and it is looked up before anything is sent.",
    ),
    (
        (
            r"unable to contact slurm controller|communication connection failure|connection refused"
            r"|controller in standby|is in standby mode|no route to host"
        ),
        _T,
        "controller-away",
        "Slurm's controller does not answer; try again when it is back.",
    ),
    (
        r"establish a configuration source|failed to fetch config",
        _T,
        "no-configuration",
        "This login host has no slurm.conf and cannot fetch it from the controller; try again later or on another one.",
    ),
    (
        r"munge|authentication error|auth_g_create|invalid job credential|unable to resolve|can't find an address",
        _T,
        "authentication",
        "Slurm's authentication does not work on this login host; try again later or on another one, or tell the site.",
    ),
    (
        (
            r"system submissions disabled|job creation temporarily disabled|temporarily unable to accept job"
            r"|unable to create job record|slurm job queue full|requested operation is presently disabled"
        ),
        _T,
        "submissions-paused",
        "The site takes no jobs at the moment; try again later.",
    ),
    (
        r"maxsubmitjob|grpsubmitjob|submitjobslimit|maxsubmitjobsperaccount",
        _T,
        "queue-full",
        "You, your account or your QOS have as many jobs in the queue as allowed; wait until some have ended.",
    ),
    (
        r"maxwall|wallduration|partitiontimelimit|time limit is invalid",
        _P,
        "time-limit",
        "Ask for less time, or choose a partition or QOS that allows more (`sacctmgr show qos format=name,maxwall`).",
    ),
    (
        r"(qos|assoc)(grp|max|min)\w+|max\w+peraccount|violates accounting/qos policy|breached requested qos",
        _P,
        "limit",
        "Ask for less, or choose another account or QOS; `sacctmgr show qos` and `sacctmgr show assoc` list limits.",
    ),
    (
        r"invalid account|account/partition combination|parent account",
        _P,
        "account",
        "Name an account that you may use in this partition; `sacctmgr show assoc user=$USER` lists yours.",
    ),
    (
        r"group not permitted to use this partition|multiple partition job request",
        _P,
        "partition",
        "Choose a partition that you may use; `sinfo` lists them.",
    ),
    (
        r"invalid partition|no partition specified",
        _P,
        "partition",
        "Choose one of the cluster's partitions; `sinfo` lists them.",
    ),
    (
        r"partition not available|partition in down state|partition configuration not available now",
        _T,
        "partition-down",
        "The partition takes no jobs at the moment; try again later or choose another one.",
    ),
    (r"invalid qos|qos preemption", _P, "qos", "Name a QOS that your account may use; `sacctmgr show assoc` lists it."),
    (
        r"reservation",
        _P,
        "reservation",
        "Check the reservation's name, time and users with `scontrol show reservation`.",
    ),
    (
        (
            r"invalid generic resource|invalid gres|gres option unsupported|duplicate generic resource|invalid tres"
            r"|must always specify a type|insufficient gres"
        ),
        _P,
        "gpu-request",
        "The site wants GPUs asked for in another way: see `gpu_request` in the cluster profile, and the type.",
    ),
    (
        r"memory specification can not be satisfied|memory required by task",
        _P,
        "memory",
        "Ask for less memory; no node of the partition has this much.",
    ),
    (
        (
            r"node configuration is not available|more processors requested|node count specification|cpu count"
            r"|task count|requested nodes not in this partition|required node not available|nodes are busy"
        ),
        _P,
        "resources",
        "No node of the partition can give this; ask for fewer GPUs, CPUs or less memory, or choose another partition.",
    ),
    (
        r"invalid feature|--constraint|--batch option",
        _P,
        "constraint",
        "Check the constraint; `sinfo -o %f` lists features.",
    ),
    (r"invalid node name", _P, "node-name", "Check the names of the nodes; `sinfo -N` lists them."),
    (r"invalid license", _P, "license", "Check the licences; `scontrol show license` lists them."),
    (
        r"dependency problem|circular job dependency",
        _P,
        "dependency",
        "The job it depends on is gone or can never end so.",
    ),
    (r"invalid --?\S*time|invalid time|time-min", _P, "time", "Check the walltime."),
    (
        r"does not look like a batch script|dos line breaks|script not specified|batch script|pathname of a file",
        _P,
        "script",
        "sbatch did not take the script; this is a fault of Towline's.",
    ),
    (
        r"unrecognized option|invalid option|ambiguous|requires an argument|invalid directive",
        _P,
        "option",
        "This Slurm does not know an option that the script uses.",
    ),
    (
        r"permission denied|access.{0,3}denied|invalid user id|invalid group id",
        _P,
        "denied",
        "The site does not let you submit this; ask its support.",
    ),
    (r"no space left|quota exceeded|i/o error writing", _T, "slurm-disk", "Slurm's own disk is full; tell the site."),
    (
        r"incompatible versions|plugin initialization failed|plugin stack",
        _P,
        "installation",
        "Slurm's installation on this login host is broken; try another one, or tell the site.",
    ),
)
_COMPILED = tuple((re.compile(pattern, re.IGNORECASE), kind, code, fix) for pattern, kind, code, fix in _TABLE)
_PREFIX = re.compile(r"^(?:sbatch|slurm\w*): (?:error: |fatal: )?")
_NOISE = re.compile(r"^(?:sbatch: )?(?:info|warning|debug\d?): |^Try \"sbatch|--num-threads", re.IGNORECASE)


def classify_refusal(stderr: str) -> Refusal:
    """Understand what sbatch printed on stderr.

    What is not known counts as permanent, with Slurm's and the site's own words.
    """
    said = _said(stderr)
    for pattern, kind, code, remedy in _COMPILED:
        if pattern.search(said):
            return Refusal(kind, code, said, remedy)
    return Refusal(_P, "refused", said, "Read what Slurm and the site say about it, and change the request.")


def _said(stderr: str) -> str:
    lines = [_PREFIX.sub("", line.strip()) for line in stderr.splitlines() if not _NOISE.search(line.strip())]
    return "\n".join(line for line in lines if line)
