"""Taking results away once a job has succeeded: a CPU job that waits for it, so that no GPU waits for an upload."""

from __future__ import annotations

import dataclasses
import shlex
from collections.abc import Mapping, Sequence

from towline.config.profile import ClusterProfile
from towline.engine import preparing
from towline.engine.data.preparing import access_of
from towline.engine.data.program import program
from towline.engine.data.staging import staging_time
from towline.engine.session import Session
from towline.models.array import parse_tasks
from towline.models.errors import SlurmRefused, TowlineError
from towline.models.job import JobRecord
from towline.models.parts import scheme_of, shared_path
from towline.models.plan import Check, Verdict
from towline.models.secrets import Secret
from towline.models.site import SiteFacts
from towline.models.spec import JobSpec
from towline.slurm.calls import Call
from towline.slurm.preparation import Preparation, state_call
from towline.slurm.scripts import script
from towline.storage.remote import delivery_failure

NAME = "all"
"""All outputs of a job go together."""
_STORES = ("s3", "gs")


def output_checks(spec: JobSpec, profile: ClusterProfile, facts: SiteFacts) -> tuple[Check, ...]:
    """Whether the spec's outputs can go where they shall."""
    if not spec.outputs:
        return ()
    odd = [uri for uri in spec.outputs.values() if not (shared_path(uri) or scheme_of(uri) in _STORES)]
    if odd:
        evidence = f"results go to s3://, gs:// and paths of the shared file system, not to {', '.join(odd)}"
        return (Check("outputs", Verdict.FAILS, evidence, "Choose such a place."),)
    if facts.partition(profile.import_partition) is None:
        evidence = (
            f"results are taken away on partition {profile.import_partition}, which {facts.cluster} does not have"
        )
        return (Check("outputs", Verdict.FAILS, evidence, "Set `import_partition`."),)
    shown = ", ".join(f"{path} to {place}" for path, place in zip(spec.outputs, places(spec), strict=True))
    when = "all tasks have ended" if spec.array else "the job has succeeded"
    whose = " of each that succeeded" if spec.array else ""
    evidence = f"once {when}, a job on {profile.import_partition} takes {shown}{whose}"
    return (Check("outputs", Verdict.OK, evidence),)


def places(spec: JobSpec, task: int | None = None) -> tuple[str, ...]:
    """Where the spec's outputs go, in their order; of an array each task's to a place of its own."""
    if spec.array is None:
        return tuple(spec.outputs.values())
    below = "TASK" if task is None else str(task)
    return tuple(f"{uri.rstrip('/')}/{below}/" for uri in spec.outputs.values())


async def deliver_later(session: Session, record: JobRecord, spec: JobSpec, secrets: Mapping[str, Secret]) -> None:
    """Have the job's outputs taken away once it has succeeded.

    Raises:
        SlurmRefused: that could not be arranged; the job itself is in Slurm's hands.
    """
    if not spec.outputs or not record.last.slurm_id:
        return
    try:
        await preparing.job_for(session, _making(session, record, spec, secrets), _state(session, record))
    except TowlineError as error:
        raise SlurmRefused(
            f"job {record.id} was submitted as Slurm job {record.last.slurm_id}, but nobody will take its outputs away",
            why=f"{error.what}: {error.why}",
            fix=f"The job goes on; its results come with `towline results {record.id} --pull DIR`.",
        ) from error


async def delivery(session: Session, record: JobRecord) -> Preparation:
    """How the job that takes a job's outputs away is doing.

    Raises:
        Unreachable, OutcomeUnknown, WaitTimedOut, RemoteFault: the cluster did not answer.
    """
    found = await preparing.look(session, NAME, _state(session, record))
    return dataclasses.replace(found, reference=record.id)


def told(found: Preparation, places: Sequence[str]) -> str:
    """One sentence about a delivery for a person.

    Args:
        found: how it is doing.
        places: where the outputs go.
    """
    where = ", ".join(places)
    if found.ready:
        return f"the outputs were taken to {where}{_told_left((found.end or {}).get('left', ''))}"
    if problem := delivery_failure(found, places):
        return f"the outputs were not taken to {where}: {problem.why} ({problem.fix})"
    job = f" by Slurm job {found.slurm_id}" if found.slurm_id else ""
    return (
        f"the outputs are being taken to {where}{job}" if found.stage else f"the outputs will be taken to {where}{job}"
    )


def _told_left(words: str) -> str:
    """What stays of an array: how many tasks, and the first of them."""
    count, *first = words.split()[:11] or ["0"]
    if count == "0":
        return ""
    more = ", …" if int(count) > len(first) else ""
    return f"; those of {count} tasks that did not succeed stay ({', '.join(first)}{more})"


def _making(session: Session, record: JobRecord, spec: JobSpec, secrets: Mapping[str, Secret]) -> preparing.Making:
    profile = session.profile
    access = access_of(spec, profile, secrets)
    lines = "".join(f"{shared_path(uri) or uri}\n{path}\n" for path, uri in spec.outputs.items())
    tasks = "".join(f"{task}\n" for task in sorted(parse_tasks(spec.array or "")))
    python = f"deliver_python={shlex.quote(_python(profile))}\n"
    return preparing.Making(
        kind="deliver",
        place=_place(record),
        name=NAME,
        key=record.id,
        command_line=f"take outputs of {record.id}",
        time=staging_time(session),
        files={
            **access.files,
            "data": python.encode(),
            "outputs": lines.encode(),
            **({"tasks": tasks.encode()} if tasks else {}),
            "stager": program(),
            "supervisor": script("deliver-job").encode(),
        },
        secrets=access.secrets,
        account=spec.account,
        after=f"afterany:{record.last.slurm_id}",
    )


def _python(profile: ClusterProfile) -> str:
    """The Python that takes results away; empty for the node's own. One of `staging_image` is in there alone."""
    return "" if profile.staging_image else profile.staging_python or ""


def _place(record: JobRecord) -> str:
    return f"{record.directory}/outputs"


def _state(session: Session, record: JobRecord) -> Call:
    return state_call(_place(record), [NAME], session.profile.setup)
