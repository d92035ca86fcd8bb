"""Having images made: one job for each, whoever asks, and the job that needs them waits for it in Slurm's hands."""

from __future__ import annotations

import asyncio
import dataclasses
import hashlib
import time

from towline.container.cache import image_file
from towline.container.imports import Import, parse_imports, state_call
from towline.container.reference import enroot_form
from towline.engine.images.preparing import cache_of
from towline.engine.outcomes import check_ending, last_words
from towline.engine.session import Session
from towline.engine.submitting.intent import owner
from towline.models.errors import OutcomeUnknown, RemoteFault, SlurmUnavailable, TowlineError
from towline.models.ids import attempt_token
from towline.models.image import Image
from towline.models.plan import Plan, PlannedImage
from towline.slurm.batch import BatchJob, render_batch
from towline.slurm.calls import Call, Submission, import_call
from towline.slurm.commands import sbatch
from towline.slurm.scripts import script
from towline.slurm.submission import environment_error, parse_submission, submission_error

PATIENCE = 120.0
"""Seconds to go on while somebody else's submission of the same import is under way, or Slurm does not answer."""
_PAUSE = 0.5


async def with_imports(session: Session, plan: Plan) -> Plan:
    """The plan with its images under way, as a submission that waits for the jobs that make them.

    A failed import makes the dependency one that can never come true, and Slurm cancels the waiting job itself
    (sbatch(1), `--kill-on-invalid-dep`).

    Raises:
        SlurmRefused, StagingFailed, AccessRefused: an import could not be submitted; nothing else was.
        Unreachable, OutcomeUnknown, WaitTimedOut, RemoteFault: the cluster did not answer.
    """
    jobs = [await import_job(session, image, plan.spec.account) for image in plan.images if not image.ready]
    terms = ",".join(filter(None, [plan.waits_for, *(f"afterok:{job}" for job in jobs if job)]))
    if terms == plan.waits_for:
        return plan
    return dataclasses.replace(plan, sbatch=sbatch(plan.sbatch[-1], terms))


def image_name(image: PlannedImage) -> str:
    """The image's name in the cache."""
    return image.path.rpartition("/")[2].removesuffix(".sqsh")


async def import_job(session: Session, image: PlannedImage, account: str | None = None) -> str:
    """Slurm's id of the one job that makes the image; empty when the image is there.

    Args:
        session: the cluster.
        image: what is to be made.
        account: of the job that needs it; the profile's `import_account` wins.

    Raises:
        SlurmRefused, StagingFailed, AccessRefused: it could not be submitted.
        Unreachable, OutcomeUnknown, WaitTimedOut, RemoteFault: the cluster did not answer.
    """
    until = time.monotonic() + PATIENCE
    while True:
        state = await look(session, image)
        if state.ready:
            return ""
        slurm_id, error = await _submit(session, image, state.next_number, account)
        if error is None:
            return slurm_id
        if time.monotonic() > until:
            raise error
        if not isinstance(error, (OutcomeUnknown, SlurmUnavailable)):
            raise error
        await asyncio.sleep(_PAUSE)


async def look(session: Session, image: PlannedImage) -> Import:
    """How an image and its import are doing.

    Raises:
        Unreachable, OutcomeUnknown, WaitTimedOut, RemoteFault: the cluster did not answer.
    """
    name = image_name(image)
    outcome = await session.call(state_call(cache_of(session.profile), [name], session.profile.setup))
    check_ending(outcome, "looking for the import")
    if error := environment_error(outcome.exit_code or 0, last_words(outcome.stderr)):
        raise error
    found = parse_imports(outcome.stdout.decode("utf-8", "replace"))
    if name not in found:
        raise RemoteFault("the import could not be looked at", why=last_words(outcome.stderr), fix="Try again.")
    return found[name]


async def _submit(
    session: Session, image: PlannedImage, number: int, account: str | None
) -> tuple[str, TowlineError | None]:
    """Slurm's id, empty when the image is there by now; or why there is none."""
    outcome = await session.call(_call(session, image, number, account))
    check_ending(outcome, "submitting the import")
    out, err = (text.decode("utf-8", "replace") for text in (outcome.stdout, outcome.stderr))
    if outcome.exit_code == 0 and out.strip() == "there":
        return "", None
    answer = parse_submission(outcome.exit_code or 0, out, err)
    return (answer.slurm.id if answer.slurm else ""), submission_error(answer)


def _call(session: Session, image: PlannedImage, number: int, account: str | None) -> Call:
    profile, name = session.profile, image_name(image)
    cache = cache_of(profile)
    directory = f"{cache}/imports/{name}"
    key = hashlib.sha256(name.encode()).hexdigest()[:10]
    reference = Image.parse(image.reference)
    batch = BatchJob(
        directory=directory,
        job_id=key,
        token=attempt_token("towline-import", key, number),
        command_line=f"enroot import {enroot_form(reference)}",
        attempt=number,
        cpus_per_task=profile.import_cpus,
        memory=profile.import_memory,
        time=profile.import_time,
        partition=(profile.import_partition,),
        account=profile.import_account or account or profile.account or "",
        comment=profile.comment,
        export_all=profile.export == "all",
    )
    facts = session.store.facts(profile.name)
    submission = Submission(
        root=cache,
        job_id=name,
        attempt=number,
        token=batch.token,
        sbatch=sbatch(f"{directory}/script/batch-{number}"),
        intent=time.time(),
        message_timeout=facts.message_timeout if facts else 10,
        owner=owner(),
    )
    files = {
        f"batch-{number}": render_batch(batch).encode(),
        "image": image_file(reference, name, image.arch, image.digest),
        "supervisor": script("image-job").encode(),
    }
    return import_call(cache, name, submission, files, profile.setup)
