"""What else a site has for a job that cannot go where it was sent, and what one should know of it. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from towline.engine.planning.fitting import takes
from towline.engine.planning.standing import associations_of, qos_of
from towline.models.site import Partition, SiteFacts
from towline.models.spec import JobSpec

_PREEMPTED = {"CANCEL": "cancelled", "REQUEUE": "requeued", "SUSPEND": "suspended"}


def elsewhere(spec: JobSpec, facts: SiteFacts, asked: Sequence[Partition] = ()) -> str:
    """Which partitions would take the job as it is, and which QOS would let it stay.

    Args:
        spec: the job.
        facts: what the site said of itself.
        asked: the partitions that it was sent to.
    """
    fitting = [_named(part, facts) for part in facts.partitions if takes(spec, part, facts)]
    ways = [f"Partitions that would take the job: {', '.join(fitting)}."] if fitting else []
    ways += _by_qos(spec, facts, asked)
    return " ".join(ways) or "No partition here takes it."


def preemption(part: Partition, facts: SiteFacts) -> str:
    """What happens to the partition's jobs when those of a higher one want the nodes: `cancelled`; empty for nothing.

    Partitions of a higher PriorityTier preempt (slurm.conf(5), PreemptType=preempt/partition_prio).
    """
    if not any(other.priority_tier > part.priority_tier for other in facts.partitions if other.available):
        return ""
    return next((word for mode, word in _PREEMPTED.items() if mode in part.preempt_mode.upper().split(",")), "")


def _named(part: Partition, facts: SiteFacts) -> str:
    word = preemption(part, facts)
    return f"{part.name} (jobs there are {word} when others want the nodes)" if word else part.name


def _by_qos(spec: JobSpec, facts: SiteFacts, asked: Sequence[Partition]) -> Iterator[str]:
    """Each QOS that the user has, with which one of the asked partitions takes the job."""
    now = qos_of(spec, facts)
    granted = dict.fromkeys(name for each in associations_of(spec, facts) for name in each.qos)
    for name in granted:
        other = spec.model_copy(update={"qos": name})
        if name != now and facts.qos(name) and (part := next((p for p in asked if takes(other, p, facts)), None)):
            yield f"With --qos {name}, partition {part.name} would."
