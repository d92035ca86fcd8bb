"""Telling a job from another one that Slurm has given the same id.

Ids start again when slurmctld has lost its state, and after MaxJobId (slurm.conf(5)). A job works in its own directory
through all its attempts; its time of submission is no mark of it, since a requeue renews that.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import replace
from typing import TypeVar

from towline.slurm.parse import AccountingRow, JobHistory, QueueRow, SlurmId
from towline.slurm.poll import PollAnswer, PollTarget

_PART = re.compile(r"[_+]")
T = TypeVar("T")


Owners = Mapping[tuple[str, str], str]
"""Towline's ids of jobs, by cluster and id of the whole jobs (an array's, a heterogeneous job's)."""


def owners_of(targets: Iterable[PollTarget]) -> Owners:
    """Whose the ids are that are asked for."""
    return {_whole(each.slurm.cluster, each.slurm.id): each.job_id for each in targets if each.slurm and each.job_id}


def split_strangers(answer: PollAnswer, owners: Owners) -> tuple[PollAnswer, frozenset[SlurmId]]:
    """The answer without the rows of strangers, and the ids of whole jobs that the queue has for some of those."""
    taken = {key for key, row in answer.queue.items() if _strange(key, row, owners)}
    histories: dict[tuple[str, str], JobHistory] = {}
    for key, history in answer.accounting.items():
        rows = [row for row in (*history.earlier, history.newest) if not _strange(key, row, owners)]
        # A record that came out of order has no directory for some seconds (seen on 22.05).
        rows = [row for row in rows if row.directory] or rows
        if rows:
            histories[key] = JobHistory(rows[-1], tuple(rows[:-1]))
    queue = {key: row for key, row in answer.queue.items() if key not in taken} if taken else answer.queue
    wholes = (_whole(*key) for key in taken)
    return replace(answer, queue=queue, accounting=histories), frozenset(SlurmId(id_, at) for at, id_ in wholes)


def apart(wanted: Sequence[tuple[PollTarget, T]]) -> list[list[tuple[PollTarget, T]]]:
    """The targets, each with what it is for, in groups in which each id is one job's: an answer has one owner of it."""
    owners: dict[tuple[str, str], str] = {}
    first: list[tuple[PollTarget, T]] = []
    later: list[tuple[PollTarget, T]] = []
    for each in wanted:
        slurm, job = each[0].slurm, each[0].job_id or ""
        whose = owners.setdefault(_whole(slurm.cluster, slurm.id), job) if slurm else job
        (first if whose == job else later).append(each)
    return [first, *apart(later)] if later else [first]


def asks_for(target: PollTarget, ids: Set[SlurmId]) -> bool:
    """Whether it is about one of these whole jobs, or a part of it."""
    if target.slurm is None:
        return False
    cluster, whole = _whole(target.slurm.cluster, target.slurm.id)
    return SlurmId(whole, cluster) in ids


def _strange(key: tuple[str, str], row: QueueRow | AccountingRow, owners: Owners) -> bool:
    owner = owners.get(key) or owners.get(_whole(*key))  # most are whole jobs
    return bool(owner and row.directory and row.directory.rpartition("/")[2] != owner)


def _whole(cluster: str, row_id: str) -> tuple[str, str]:
    return cluster, row_id if row_id.isdecimal() else _PART.split(row_id, maxsplit=1)[0]
