"""What accounting grants a job: its account, its QOS, and the limits that hold for it. Pure.

A limit is looked for in the partition's QOS, the job's QOS and the user's association, and the first that has one
counts; with the flag OverPartQOS the job's QOS comes first (slurm.conf(5), "resource limits").
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from towline.models.site import Association, Limit, Partition, Qos, SiteFacts
from towline.models.spec import JobSpec

ENFORCING_ACCOUNTS = frozenset({"associations", "limits", "qos", "safe", "wckeys"})
ENFORCING_LIMITS = frozenset({"limits", "safe"})


@dataclass(frozen=True)
class Bound:
    """One limit with what it is a limit of.

    Attributes:
        most: seconds, or a number of the resource.
        whose: for example `partition batch` or `QOS limited`.
    """

    most: int
    whose: str


def enforces(facts: SiteFacts, words: frozenset[str]) -> bool:
    """Whether accounting refuses what breaks such a rule."""
    return bool(words & set(facts.enforces))


def account_of(spec: JobSpec, facts: SiteFacts) -> str:
    """The account that the job is charged to; empty when it is not known."""
    return (spec.account or facts.default_account).lower()


def associations_of(spec: JobSpec, facts: SiteFacts, part: Partition | None = None) -> tuple[Association, ...]:
    """The user's associations for the job's account, those of the partition first."""
    wanted = [each for each in facts.associations or () if each.account.lower() == account_of(spec, facts)]
    own = [each for each in wanted if part and each.partition == part.name]
    return (*own, *(each for each in wanted if not each.partition))


def qos_of(spec: JobSpec, facts: SiteFacts, part: Partition | None = None) -> str:
    """The QOS that the job gets; empty when it is not known."""
    return spec.qos or next((each.default_qos for each in associations_of(spec, facts, part) if each.default_qos), "")


def time_bounds(spec: JobSpec, part: Partition, facts: SiteFacts) -> tuple[Bound, ...]:
    """Every limit on the job's walltime in that partition, the tightest first."""
    found: list[Bound] = []
    job_qos = facts.qos(qos_of(spec, facts, part))
    if part.max_time is not None and not (job_qos and "PartitionTimeLimit" in job_qos.flags):
        found.append(Bound(part.max_time, f"partition {part.name}"))
    if enforces(facts, ENFORCING_LIMITS):
        granted = ((name, each.max_time) for name, each in _grantors(spec, part, facts))
        found += [Bound(most, whose) for whose, most in granted if most is not None][:1]
    return tuple(sorted(found, key=lambda bound: bound.most))


def resource_bounds(spec: JobSpec, part: Partition, facts: SiteFacts) -> dict[str, Bound]:
    """Slurm's name of a resource → the tightest limit on it."""
    bounds: dict[str, Bound] = {}
    seen: set[tuple[str, str]] = set()
    for whose, limit in _limits(spec, part, facts):
        if (limit.per, limit.resource) in seen:
            continue
        seen.add((limit.per, limit.resource))
        said = whose if limit.per == "job" else f"{whose} for all jobs of {_COUNTED[limit.per]} together"
        if limit.resource not in bounds or limit.most < bounds[limit.resource].most:
            bounds[limit.resource] = Bound(limit.most, said)
    return bounds


_COUNTED = {"user": "yours", "group": "everybody"}


def _limits(spec: JobSpec, part: Partition, facts: SiteFacts) -> Iterator[tuple[str, Limit]]:
    if enforces(facts, ENFORCING_LIMITS):
        for whose, each in _grantors(spec, part, facts):
            for limit in each.limits:
                yield whose, limit


def _grantors(spec: JobSpec, part: Partition, facts: SiteFacts) -> Sequence[tuple[str, Qos | Association]]:
    """Who may set a limit for the job, the first in precedence first."""
    job_qos, part_qos = facts.qos(qos_of(spec, facts, part)), facts.qos(part.qos)
    ranked = [job_qos, part_qos] if job_qos and "OverPartQOS" in job_qos.flags else [part_qos, job_qos]
    qoses: list[tuple[str, Qos | Association]] = [(f"QOS {each.name}", each) for each in ranked if each]
    return [*qoses, *((f"account {each.account}", each) for each in associations_of(spec, facts, part)[:1])]
