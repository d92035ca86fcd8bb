"""Dependencies: which Slurm jobs they mean, and what has become of these, before anything is sent.

Slurm's own word is not enough. It takes a dependency on a job that it has forgotten (MinJobAge, 300 s by default) or
never had for satisfied (seen on 22.05), and its `singleton` goes by the job name, which holds Towline's id here.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from towline.engine.addressing import find_job
from towline.engine.session import Session
from towline.engine.watching.observation import ask, poll
from towline.models.array import format_tasks, parse_tasks
from towline.models.dependency import Dependency
from towline.models.errors import NotFound
from towline.models.job import JobRecord, JobState
from towline.models.plan import Check, Verdict
from towline.models.spec import JobSpec
from towline.slurm.calls import PollTarget
from towline.slurm.parse import SlurmId

_SLURM_ID = re.compile(r"[0-9]+(?:_[0-9]+)?")

_NEVER = {
    "afterok": (JobState.FAILED, JobState.CANCELLED),
    "aftercorr": (JobState.FAILED, JobState.CANCELLED),
    "afternotok": (JobState.SUCCEEDED,),
}
"""Ends of the other job after which this one would never start."""


@dataclass(frozen=True)
class Settled:
    """A spec's dependencies as its submission needs them.

    Attributes:
        wanted: the dependencies with ids in the place of names.
        terms: the value of `sbatch --dependency`; empty when there is nothing left to wait for.
        checks: one for each dependency.
    """

    wanted: tuple[Dependency, ...] = ()
    terms: str = ""
    checks: tuple[Check, ...] = ()


NO_DEPENDENCIES = Settled()


@dataclass(frozen=True)
class Predecessor:
    """The other job of one dependency, as it is now.

    Attributes:
        dependency: the dependency as it was given.
        title: names the job for people.
        state: what became of it.
        slurm_id: Slurm's newest id of it; empty while Slurm does not have it.
        reference: what names it when its name has come to mean another job; empty when the dependency does.
        note: why it is in that state.
        tasks: the numbers of its tasks; empty unless it is an array that is known here.
    """

    dependency: Dependency
    title: str
    state: JobState
    slurm_id: str
    reference: str = ""
    note: str = ""
    tasks: frozenset[int] = frozenset()

    @property
    def wanted(self) -> Dependency:
        """The dependency in words that stay true."""
        if self.dependency.kind == "singleton" or not self.reference:
            return self.dependency
        return self.dependency.model_copy(update={"job": self.reference})


async def settle(session: Session, spec: JobSpec) -> Settled:
    """Look at the jobs that a spec depends on; takes a round trip if there are any, and one more for Slurm ids.

    Raises:
        NotFound, Ambiguous: one of them is not known, or its name means several.
        Unreachable, OutcomeUnknown, WaitTimedOut, RemoteFault: they could not be looked at.
    """
    if not spec.depends_on:
        return NO_DEPENDENCIES
    before: list[Predecessor] = []
    for dependency in spec.depends_on:
        before += await _before(session, dependency, spec.name)
    return _settled(before, parse_tasks(spec.array or ""))


async def _before(session: Session, dependency: Dependency, name: str) -> list[Predecessor]:
    """The jobs that one dependency is about."""
    store, cluster = session.store, session.profile.name
    if dependency.kind == "singleton":
        others = [job for job in store.by_name(name, cluster) if not job.state.ended]
        return [_predecessor(dependency, record) for record in await poll(session, others)]
    if _SLURM_ID.fullmatch(dependency.job):
        return [await _by_slurm_id(session, dependency)]
    (record,) = await poll(session, [find_job(store, cluster, dependency.job)])
    return [_predecessor(dependency, record)]


def _predecessor(dependency: Dependency, record: JobRecord) -> Predecessor:
    title = f"job {record.reference} ({record.name})"
    tasks = record.tasks.numbers if record.tasks else frozenset[int]()
    return Predecessor(dependency, title, record.state, record.last.slurm_id, record.reference, record.note, tasks)


async def _by_slurm_id(session: Session, dependency: Dependency) -> Predecessor:
    """The job that has this Slurm id now: one of Towline's, unless it ended and Slurm gave its id to a later one."""
    asked = SlurmId(dependency.job)
    answer = await ask(session, [PollTarget(None, 1, asked)])
    row, history = answer.row(asked), answer.history(asked)
    found = row or (history.newest if history else None)
    own = _own(session, dependency)
    if own and (found is None or not own.state.ended or (found.submitted or 0) <= (own.last.submitted or 0)):
        (record,) = await poll(session, [own])
        return _predecessor(dependency, record)
    if found is None:
        raise NotFound(
            f"Slurm knows no job {dependency.job}",
            why="It is neither in the queue nor in accounting, and no job of this state directory had that id.",
            fix="Look for the id with `squeue --me` there, or leave the dependency out if that job is done.",
        )
    return Predecessor(dependency, f"Slurm job {asked.id}", found.state, asked.id)


def _own(session: Session, dependency: Dependency) -> JobRecord | None:
    try:
        return find_job(session.store, session.profile.name, dependency.job)
    except NotFound:
        return None


def _settled(before: Sequence[Predecessor], tasks: frozenset[int]) -> Settled:
    judged = [judge(each, tasks) for each in before]
    return Settled(
        wanted=tuple(dict.fromkeys(each.wanted for each in before)),
        terms=",".join(dict.fromkeys(term for term, _ in judged if term)),
        checks=tuple(check for _, check in judged),
    )


def judge(before: Predecessor, tasks: frozenset[int] = frozenset()) -> tuple[str, Check]:
    """The term for `sbatch --dependency`, empty when there is nothing to wait for, and the verdict.

    Args:
        before: the other job.
        tasks: the numbers of the tasks of the job that depends on it; empty when that is no array.
    """
    kind, state, title = before.dependency.kind, before.state, before.title
    because = f": {before.note}" if before.note else ""
    if state in (JobState.SUBMITTING, JobState.REFUSED) or not (state.ended or before.slurm_id):
        fix = "Wait until Slurm has it, or depend on a job that Slurm has."
        return "", Check(
            "dependency", Verdict.FAILS, f"{kind}: {title} is not in Slurm's hands ({state}){because}", fix
        )
    if state in _NEVER.get(kind, ()):
        what = f"{kind}: {title} {_ENDED[state]}{because}; this job would never start"
        return "", Check("dependency", Verdict.FAILS, what, "Depend on a job that can still end so, or use afterany.")
    if kind == "aftercorr" and before.tasks and (alone := tasks - before.tasks):
        # Slurm starts these at once, without a word.
        what = f"{kind}: {title} has no counterpart of task {format_tasks(alone)}, which would not wait at all"
        return "", Check("dependency", Verdict.FAILS, what, "Give both arrays the same numbers, or use afterok.")
    if state.ended:
        return "", Check("dependency", Verdict.OK, f"{kind}: {title} {_ENDED[state]}, so there is nothing to wait for")
    term = f"{'afterany' if kind == 'singleton' else kind}:{before.slurm_id}"
    where = "" if before.slurm_id in title else f", Slurm job {before.slurm_id}"
    return term, Check("dependency", Verdict.OK, f"{kind}: {title} is {state}{where}")


_ENDED = {JobState.SUCCEEDED: "succeeded", JobState.FAILED: "failed", JobState.CANCELLED: "was cancelled"}
