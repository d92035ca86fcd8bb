"""Having data brought by jobs: one for each copy, whoever asks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from towline.config.profile import ClusterProfile
from towline.engine import preparing
from towline.engine.data.preparing import access_of, place_of
from towline.engine.data.program import program
from towline.engine.planning.containers import container_words, runtime_of
from towline.engine.session import Session
from towline.models.image import Image
from towline.models.parts import Mount
from towline.models.plan import Plan, PlannedInput
from towline.models.secrets import Secret
from towline.models.spec import JobSpec
from towline.slurm.preparation import state_call
from towline.slurm.scripts import script
from towline.storage.remote import Access, container_command, data_file


async def staging_jobs(session: Session, plan: Plan, secrets: Mapping[str, Secret]) -> list[str]:
    """Slurm's ids of the jobs that bring a plan's data, as far as it is not there.

    Args:
        session: the cluster.
        plan: the job that needs it.
        secrets: the values of the job's secrets.

    Raises:
        SlurmRefused, StagingFailed, AccessRefused: one could not be submitted.
        Unreachable, OutcomeUnknown, WaitTimedOut, RemoteFault: the cluster did not answer.
    """
    access = access_of(plan.spec, session.profile, secrets)
    missing = {each.path: each for each in plan.inputs if not each.ready and each.most is None}
    return [await _job(session, each, access, plan.spec.account) for each in missing.values()]


async def _job(session: Session, planned: PlannedInput, access: Access, account: str | None) -> str:
    profile, place = session.profile, place_of(session.profile)
    name = planned.path.removesuffix("/data").rpartition("/")[2]
    data = data_file(
        planned.uri,
        name,
        planned.version,
        profile.staging_tools,
        profile.staging_python or "",
        _container(session, place),
        profile.setup,
    )
    making = preparing.Making(
        kind="stage",
        place=place,
        name=name,
        command_line=f"bring {planned.uri}",
        time=staging_time(session),
        files={**access.files, "data": data, "stager": program(), "supervisor": script("data-job").encode()},
        secrets=access.secrets,
        account=account,
    )
    return await preparing.job_for(session, making, state_call(place, [name], profile.setup))


def staging_time(session: Session) -> int:
    """The profile's walltime, as far as the partition allows it."""
    facts = session.store.facts(session.profile.name)
    part = facts.partition(session.profile.import_partition) if facts else None
    wanted = session.profile.staging_time
    return min(wanted, part.max_time) if part and part.max_time else wanted


def _container(session: Session, place: str) -> tuple[str, ...]:
    """The command that runs another one in the profile's image; none on the node itself."""
    profile, facts = session.profile, session.store.facts(session.profile.name)
    if not profile.staging_image or facts is None:
        return ()
    image = Image.parse(profile.staging_image)
    spec = JobSpec(command=("true",), image=profile.staging_image)
    mounts = (Mount(source=place, target=place),)
    words = container_words(spec, spec.image, image, mounts, runtime_of(profile, facts))
    return container_command(words, profile.import_cpus)


def fetch_files(spec: JobSpec, profile: ClusterProfile, inputs: Sequence[PlannedInput]) -> dict[str, bytes]:
    """The files of a job that brings inputs itself; its keys are among its own secrets."""
    own = [each for each in inputs if each.most is not None]
    if not own:
        return {}
    lines = "".join(f"{each.most or '-'} {each.uri}\n" for each in own)
    variables = access_of(spec, profile, {}).files["variables"]
    return {"script/fetch": lines.encode(), "script/variables": variables, "script/stager": program()}
