"""Why a job waits, from its reason to what is behind it. Pure: what queue and site said in, sentences out."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from towline.engine.planning.fitting import fits, takes
from towline.engine.planning.standing import resource_bounds, time_bounds
from towline.models.job import JobRecord
from towline.models.site import Partition, SiteFacts
from towline.models.spec import JobSpec
from towline.models.values import format_walltime
from towline.models.waiting import Waiting
from towline.slurm.queue import Queue, Reservation
from towline.slurm.reasons import explain_reason

_QUEUED = ("Resources", "Priority", "None")
_LEAST = 60
"""Seconds of walltime under which no advice is given."""


@dataclass(frozen=True)
class Case:
    """What an explanation is made from.

    Attributes:
        record: the job.
        spec: what it asks for.
        seen: what the queue said.
        site: what the site said of itself; None when it is not known.
        jobs: this user's own jobs by Slurm id, for dependencies.
    """

    record: JobRecord
    spec: JobSpec
    seen: Queue
    site: SiteFacts | None = None
    jobs: Mapping[str, JobRecord] = field(default_factory=dict[str, JobRecord])

    @property
    def reason(self) -> str:
        """Slurm's reason; `scontrol` writes its free texts with underscores."""
        told = self.seen.job.get("Reason", "")
        return self.record.last.reason or told.replace("_", " ")

    @property
    def partitions(self) -> tuple[str, ...]:
        """Where the job may go."""
        asked = self.seen.job.get("Partition", "")
        return tuple(asked.split(",")) if asked else self.spec.partition

    @property
    def parts(self) -> tuple[Partition, ...]:
        """The same, as the site described them."""
        return tuple(part for name in self.partitions if self.site and (part := self.site.partition(name)))

    @property
    def in_queue(self) -> bool:
        """Whether the job only waits for its turn and for room."""
        return self.reason in _QUEUED or self.reason.startswith(("ReqNodeNotAvail", "Nodes required"))


def explain(case: Case) -> Waiting:
    """Why the job waits, and what would let it start sooner."""
    reason = explain_reason(case.reason)
    facts = [sentence for tell in _FACTS for sentence in tell(case)]
    sooner = [] if reason.blocked else [sentence for tell in _SOONER for sentence in tell(case)]
    return Waiting(
        reason=reason.word,
        sentence=reason.sentence,
        blocked=reason.blocked,
        way_out=reason.way_out,
        facts=tuple(facts),
        start_in=None if reason.blocked else case.seen.start_in,
        nodes=case.seen.nodes,
        sooner=tuple(dict.fromkeys(sooner)),
    )


# --- Facts ---

Sentences = Iterator[str]


def _nodes(case: Case) -> Sentences:
    there = [each for each in case.seen.free if each.partition in case.partitions]
    if not case.in_queue or not there:
        return
    fitting = [each for each in there if fits(case.spec, each.kind)]
    total = sum(each.kind.count for each in fitting)
    idle = sum(each.kind.count for each in fitting if each.idle)
    shared = sum(each.kind.count for each in fitting if each.shared)
    asked = case.spec.resources.nodes
    where = " or ".join(case.partitions)
    partly = f", {shared} partly" if shared else ""
    yield f"{idle} of {total} nodes of {where} that fit the job are free{partly}; it asks for {_count(asked, 'node')}"


def _ahead(case: Case) -> Sentences:
    if case.in_queue and case.seen.ahead and case.seen.ahead[0]:
        count, nodes, own = case.seen.ahead
        whose = f", {own} of them yours" if own else ""
        yield f"{_count(count, 'job')} in front of it {_ask(count)} for {_count(nodes, 'node')}{whose}"


def _running(case: Case) -> Sentences:
    if case.in_queue and case.seen.running and case.seen.running[0]:
        count, nodes, first = case.seen.running
        until = f"; the first has to end within {_span(first)}" if first is not None and first > 0 else ""
        yield f"{_count(count, 'job')} there {'runs' if count == 1 else 'run'} on {_count(nodes, 'node')}{until}"


def _limits(case: Case) -> Sentences:
    if not re.match(r"(QOS|Assoc|Max|Partition(Time|Node|Config))", case.reason) or case.site is None:
        return
    for part in case.parts:
        own = f"; your running jobs have {_own(case)}" if case.seen.own and "Max" in case.reason else ""
        for name, bound in resource_bounds(case.spec, part, case.site).items():
            yield f"{bound.whose} allows {bound.most} {_RESOURCES.get(name, name)}{own}"
        for bound in time_bounds(case.spec, part, case.site)[:1]:
            asked = case.spec.resources.time
            yield f"{bound.whose} allows {format_walltime(bound.most)}" + (
                f"; the job asks for {format_walltime(asked)}" if asked else ""
            )
        if case.reason in ("PartitionNodeLimit", "PartitionConfig"):
            most = min(part.nodes, part.max_nodes or part.nodes)
            yield f"partition {part.name} allows {_count(most, 'node')}; the job asks for {case.spec.resources.nodes}"


def _own(case: Case) -> str:
    count, nodes, cpus, gpus = case.seen.own or (0, 0, 0, 0)
    return f"{_count(nodes, 'node')}, {_count(cpus, 'CPU')} and {_count(gpus, 'GPU')} in {_count(count, 'job')}"


def _dependencies(case: Case) -> Sentences:
    for kind, slurm_id, said in case.seen.dependencies:
        known = case.jobs.get(slurm_id)
        which = f"job {known.reference} ({known.name}, Slurm job {slurm_id})" if known else f"Slurm job {slurm_id}"
        state = f", which is {known.state}" if known else ""
        words = _KINDS.get(kind, f"({kind})")
        yield f"it starts {words} {which}{state}" + (f"; Slurm says {said}" if said not in ("", "unfulfilled") else "")


def _reservations(case: Case) -> Sentences:
    for each in _in_the_way(case):
        what = "a maintenance" if each.maintenance else f"the reservation {each.name}"
        when = f"in {_span(each.start_in)}" if each.start_in > 0 else "now"
        where = each.nodes or each.partition or "nodes"
        yield f"{what} of {where} begins {when} and lasts until {_span(each.end_in)} from now"


def _priority(case: Case) -> Sentences:
    priority = case.seen.job.get("Priority", "")
    if case.reason == "Priority" and priority.isdecimal():
        yield f"its priority is {priority}"


_FACTS: tuple[Callable[[Case], Sentences], ...] = (
    _nodes,
    _ahead,
    _running,
    _priority,
    _limits,
    _dependencies,
    _reservations,
)
_KINDS = {
    "afterok": "after the success of",
    "afterany": "after the end of",
    "afternotok": "after the failure of",
    "after": "after the start of",
    "aftercorr": "after the same task of",
}
_RESOURCES = {"gres/gpu": "GPUs", "node": "nodes", "cpu": "CPUs", "mem": "MiB of memory", "queued": "jobs in the queue"}


# --- What would help ---


def _shorter(case: Case) -> Sentences:
    """A walltime that ends before what is in the way begins; jobs that fit into a gap are started out of turn."""
    asked = case.spec.resources.time
    if not asked:
        return
    for each in _in_the_way(case):
        if _LEAST < each.start_in < asked:
            yield f"with a walltime below {_span(each.start_in)} it could run before that"
            return


def _smaller(case: Case) -> Sentences:
    asked = case.spec.resources.nodes
    free = [each for each in case.seen.free if each.partition in case.partitions and each.idle]
    idle = sum(each.kind.count for each in free if fits(case.spec, each.kind))
    if case.in_queue and 0 < idle < asked:
        yield f"with {_count(idle, 'node')} instead of {asked} it could start on what is free now"


def _elsewhere(case: Case) -> Sentences:
    if not case.in_queue or case.site is None:
        return
    wanted = case.spec.resources.nodes
    for part in case.site.partitions:
        free = [each for each in case.seen.free if each.partition == part.name and each.idle]
        idle = sum(each.kind.count for each in free if fits(case.spec, each.kind))
        if part.name not in case.partitions and idle >= wanted and takes(case.spec, part, case.site):
            yield f"partition {part.name} would take it and has {_count(idle, 'node')} free"


_SOONER: tuple[Callable[[Case], Sentences], ...] = (_shorter, _smaller, _elsewhere)


def _in_the_way(case: Case) -> list[Reservation]:
    """Reservations of others that the job would run into if it started now."""
    if not case.in_queue:
        return []
    time = case.spec.resources.time or 0
    own = case.spec.reservation
    found = [each for each in case.seen.reservations if each.name != own and each.start_in < max(time, _LEAST)]
    return sorted(
        (each for each in found if each.maintenance or not each.partition or each.partition in case.partitions),
        key=lambda each: each.start_in,
    )


def _ask(count: int) -> str:
    return "asks" if count == 1 else "ask"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _span(seconds: int) -> str:
    """A span of time for a sentence: `5 minutes`, `3 hours`, `2 days`."""
    for unit, length in (("day", 86400), ("hour", 3600), ("minute", 60)):
        if seconds >= 2 * length or (unit == "minute" and seconds >= length):
            return _count(seconds // length, unit)
    return _count(max(seconds, 0), "second")
