"""What accounting says of a user's rights and limits (`sacctmgr`, one record a line)."""

from __future__ import annotations

import re

from towline.models.site import QUEUED, Association, Limit, Per, Qos
from towline.slurm.durations import parse_limit

ASSOCIATION_FIELDS = "Account,Partition,QOS,DefaultQOS,MaxWall,MaxTRES,GrpTRES,MaxSubmitJobs,GrpSubmitJobs"
"""Fields of `sacctmgr show associations`; parents' limits are passed down unless WOPLimits is said (sacctmgr(1))."""

QOS_FIELDS = "Name,MaxWall,MaxTRES,MaxTRESPU,GrpTRES,Flags,MaxSubmitJobsPerUser,GrpSubmitJobs"
"""Fields of `sacctmgr show qos`."""

_AMOUNT = re.compile(r"(\d+)([KMGTP]?)", re.IGNORECASE)
_MIB = {"": 1, "K": 1 / 1024, "M": 1, "G": 1 << 10, "T": 1 << 20, "P": 1 << 30}


def parse_associations(sacctmgr: str) -> tuple[Association, ...]:
    """Records of `sacctmgr --parsable2 show associations` with `ASSOCIATION_FIELDS`."""
    return tuple(
        Association(
            account=account,
            partition=partition,
            qos=_words(qos),
            default_qos=default_qos,
            max_time=parse_limit(max_wall),
            limits=(*parse_limits("job", job), *parse_limits("group", group), *_queued(mine, all_)),
        )
        for account, partition, qos, default_qos, max_wall, job, group, mine, all_ in _records(sacctmgr, 9)
    )


def parse_qoses(sacctmgr: str) -> tuple[Qos, ...]:
    """Records of `sacctmgr --parsable2 show qos` with `QOS_FIELDS`."""
    return tuple(
        Qos(
            name=name,
            max_time=parse_limit(max_wall),
            limits=(
                *parse_limits("job", job),
                *parse_limits("user", user),
                *parse_limits("group", group),
                *_queued(mine, all_),
            ),
            flags=_words(flags),
        )
        for name, max_wall, job, user, group, flags, mine, all_ in _records(sacctmgr, 8)
    )


def parse_limits(per: Per, text: str) -> tuple[Limit, ...]:
    """Limits of `cpu=64,gres/gpu=4,mem=100G`; what is no number (`-1` takes a limit away) is none."""
    pairs = [word.partition("=") for word in _words(text)]
    found = [(name, _AMOUNT.fullmatch(amount)) for name, _, amount in pairs]
    return tuple(Limit(per, name, int(int(hit[1]) * _scale(name, hit[2]))) for name, hit in found if hit)


def _queued(user: str, group: str) -> tuple[Limit, ...]:
    """Limits on jobs in the queue; 0 is how a site pauses submissions, and so for the moment only."""
    given: tuple[tuple[Per, str], ...] = (("user", user), ("group", group))
    return tuple(Limit(per, QUEUED, int(most)) for per, most in given if most.isdecimal() and int(most))


def _scale(resource: str, unit: str) -> float:
    return _MIB[unit.upper()] if resource == "mem" else 1


def _records(text: str, fields: int) -> list[list[str]]:
    rows = [line.split("|") for line in text.splitlines()]
    return [[cell.strip() for cell in row] for row in rows if len(row) == fields and row[0].strip()]


def _words(text: str) -> tuple[str, ...]:
    return tuple(word.strip() for word in text.split(",") if word.strip())
