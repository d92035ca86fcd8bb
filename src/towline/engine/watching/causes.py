"""What the failed tasks of an array failed of, each cause once. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from towline.models.array import format_tasks
from towline.models.diagnosis import Diagnosis
from towline.models.job import Attempt, JobRecord, JobState

_VARYING = re.compile(r"0x[0-9a-fA-F]+|(['\"]).*?\1|[\w./-]*\d[\w./-]*")
"""What tells lines apart that say the same of different tasks: numbers, names with numbers, what stands in quotes."""


@dataclass(frozen=True)
class Cause:
    """One cause that several failed tasks have in common.

    Attributes:
        tasks: their numbers, as `towline.models.array` writes them.
        diagnosis: that of the lowest of them; None when nothing is known of why they failed.
    """

    tasks: str
    diagnosis: Diagnosis | None = None


def causes(record: JobRecord) -> tuple[Cause, ...]:
    """The causes of an array's failures, those of most tasks first; none for any other job.

    Tasks whose failures have no diagnosis, and those of which no more than the failure is known, come last.
    """
    if record.tasks is None:
        return ()
    failures = sorted(record.tasks.failures, key=lambda each: each.task or 0)
    groups: dict[tuple[str, ...], list[Attempt]] = {}
    for each in failures:
        if each.diagnosis:
            groups.setdefault(_key(each.diagnosis), []).append(each)
    told = [Cause(_numbers(group), group[0].diagnosis) for group in groups.values()]
    told.sort(key=lambda cause: -len(groups[_key(cause.diagnosis)]) if cause.diagnosis else 0)
    explained = {each.task for each in failures if each.diagnosis}
    rest = record.tasks.by_state()[JobState.FAILED] - explained
    return (*told, Cause(format_tasks(rest))) if rest else tuple(told)


def _key(found: Diagnosis) -> tuple[str, ...]:
    """What two ends have in common that have one cause."""
    return (found.kind, found.rule, found.node if found.blames else "", _VARYING.sub("…", found.evidence))


def _numbers(failures: Iterable[Attempt]) -> str:
    return format_tasks(each.task for each in failures if each.task is not None)
