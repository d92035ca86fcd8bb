"""Which job a word on the command line means: an id, a Slurm id, or a name."""

from __future__ import annotations

import re

from towline.engine.store import Store
from towline.engine.watching.arrays import shortened, task_of
from towline.models.errors import Ambiguous, NotFound
from towline.models.ids import is_job_id
from towline.models.job import JobRecord

_TASK = re.compile(r"(.+?)(?:_([0-9]{1,7})|\[([0-9]{1,7})\])")


def find_job(store: Store, cluster: str, reference: str) -> JobRecord:
    """The job that the reference means.

    An id comes first, then a Slurm id (the newest job that had it, for ids repeat), then a name: the one job of
    that name that has not ended, else the newest that has. Each with `_3` or `[3]` behind it is that task of an array.

    Raises:
        NotFound: no job of this store answers to it.
        Ambiguous: several jobs of that name have not ended.
    """
    try:
        return _job(store, cluster, reference)
    except Ambiguous:
        raise
    except NotFound:
        if not (found := _TASK.fullmatch(reference)):
            raise
    return _task(_job(store, cluster, found[1]), int(found[2] or found[3]))


def _task(job: JobRecord, number: int) -> JobRecord:
    if job.tasks and number in job.tasks.numbers:
        return task_of(job, number)
    has = f"Its tasks are {shortened(job.tasks.numbers)}." if job.tasks else "It is no array."
    raise NotFound(f"job {job.id} ({job.name}) has no task {number}", why=has, fix=f"See `towline status {job.id}`.")


def _job(store: Store, cluster: str, reference: str) -> JobRecord:
    if is_job_id(reference) and (job := store.job(reference)):
        return _on_cluster(job, cluster)
    slurm_id = reference.split("+")[0]
    if slurm_id.isdigit() and (jobs := store.by_slurm_id(slurm_id, cluster)):
        return jobs[0]
    return _named(store.by_name(reference, cluster), cluster, reference)


def _on_cluster(job: JobRecord, cluster: str) -> JobRecord:
    if job.cluster != cluster:
        raise NotFound(
            f"job {job.id} is not on cluster {cluster!r}",
            why=f"It was submitted to {job.cluster!r}.",
            fix=f"Ask with `--cluster {job.cluster}`.",
        )
    return job


def _named(jobs: tuple[JobRecord, ...], cluster: str, name: str) -> JobRecord:
    alive = [job for job in jobs if not job.state.ended]
    if len(alive) > 1:
        raise Ambiguous(
            f"{len(alive)} jobs named {name!r} have not ended",
            why="They are " + ", ".join(f"{job.id} ({job.state})" for job in alive) + ".",
            fix="Give the id of the one that is meant.",
        )
    if not jobs:
        raise NotFound(
            f"no job {name!r} is known on cluster {cluster!r}",
            why="It is no id, no Slurm id and no name of a job that was submitted with this state directory.",
            fix="See the known jobs with `towline ps -a`; `towline adopt` finds those that another machine has "
            "submitted.",
        )
    return alive[0] if alive else jobs[0]
