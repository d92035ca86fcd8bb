"""Taking results away once a job has succeeded: a CPU job that waits for it, so that no GPU waits for an upload."""

from __future__ import annotations

import dataclasses
import shlex
from collections.abc import Mapping

from towline.config.profile import ClusterProfile
from towline.engine import preparing
from towline.engine.data.preparing import access_of
from towline.engine.data.program import program
from towline.engine.data.staging import staging_time
from towline.engine.session import Session
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
    if spec.array:
        evidence = "the tasks of an array have results of their own, and outputs would take one place for all"
        return (Check("outputs", Verdict.FAILS, evidence, "Leave outputs out; `towline results --pull` brings them."),)
    odd = [uri for uri in spec.outputs.values() if not (shared_path(uri) or scheme_of(uri) in _STORES)]
    if odd:
        evidence = f"results go to s3://, gs:// and paths of the shared file system, not to {', '.join(odd)}"
        return (Check("outputs", Verdict.FAILS, evidence, "Choose such a place."),)
    if facts.partition(profile.import_partition) is None:
        evidence = (
            f"results are taken away on partition {profile.import_partition}, which {facts.cluster} does not have"
        )
        return (Check("outputs", Verdict.FAILS, evidence, "Set `import_partition`."),)
    shown = ", ".join(f"{path} to {uri}" for path, uri in spec.outputs.items())
    evidence = f"once the job has succeeded, a job on {profile.import_partition} takes {shown}"
    return (Check("outputs", Verdict.OK, evidence),)


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


def told(found: Preparation, uris: Mapping[str, str]) -> str:
    """One sentence about a delivery for a person."""
    where = ", ".join(uris.values())
    if found.ready:
        return f"the outputs were taken to {where}"
    if problem := delivery_failure(found, tuple(uris.values())):
        return f"the outputs were not taken to {where}: {problem.why} ({problem.fix})"
    job = f" by Slurm job {found.slurm_id}" if found.slurm_id else ""
    return (
        f"the outputs are being taken to {where}{job}" if found.stage else f"the outputs will be taken to {where}{job}"
    )


def _making(session: Session, record: JobRecord, spec: JobSpec, secrets: Mapping[str, Secret]) -> preparing.Making:
    profile = session.profile
    access = access_of(spec, profile, secrets)
    lines = "".join(f"{shared_path(uri) or uri} {path}\n" for path, uri in spec.outputs.items())
    python = f"deliver_python={shlex.quote(profile.staging_python or '')}\n"
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
            "stager": program(),
            "supervisor": script("deliver-job").encode(),
        },
        secrets=access.secrets,
        account=spec.account,
        after=f"afterany:{record.last.slurm_id}",
    )


def _place(record: JobRecord) -> str:
    return f"{record.directory}/outputs"


def _state(session: Session, record: JobRecord) -> Call:
    return state_call(_place(record), [NAME], session.profile.setup)
