"""What a plan can only know from the cluster, looked at without sending the job."""

from __future__ import annotations

import dataclasses

from towline.engine.outcomes import check_ending, last_words
from towline.engine.planning.estimating import estimate
from towline.engine.session import Session
from towline.engine.submitting.submission import image_paths, required_paths
from towline.models.plan import Check, Estimate, Plan, Verdict
from towline.slurm.calls import look_call
from towline.slurm.look import Look, parse_look
from towline.slurm.refusals import RefusalKind
from towline.slurm.space import amount
from towline.slurm.submission import environment_error, lacking_error


async def looked_at(session: Session, plan: Plan) -> Plan:
    """The plan with a verdict for its paths, with Slurm's own verdict on its script, and when it would start.

    One round trip; nothing on the cluster is changed.

    Raises:
        Unreachable, OutcomeUnknown, WaitTimedOut: the cluster could not be asked.
        ConfigError, RemoteFault: Slurm's commands are not there.
    """
    profile, spec = session.profile, plan.spec
    batch = plan.files["script/batch"]
    outcome = await session.call(look_call(profile.root, batch, required_paths(plan), profile.setup))
    check_ending(outcome, "looking at what the job needs")
    if error := environment_error(outcome.exit_code or 0, last_words(outcome.stderr)):
        raise error
    try:
        seen = parse_look(outcome.stdout.decode("utf-8", "replace"))
    except ValueError:
        return plan
    checks = [_judged(check, plan, seen) for check in plan.checks]
    looked = dataclasses.replace(plan, checks=(*checks, *_space(plan, seen), *_slurm(seen, checks)))
    # Slurm forecasts a start also for jobs that limits of time or of a QOS refuse later.
    found = Estimate() if looked.failures else estimate(spec, seen, session.store.waits(profile.name))
    return dataclasses.replace(looked, estimate=found)


def _judged(check: Check, plan: Plan, seen: Look) -> Check:
    if check.verdict is not Verdict.ON_SUBMIT:
        return check
    images = image_paths(plan) & set(plan.required_paths)
    about = images if check.name == "image" else set(plan.required_paths) - images
    wrong = [
        *(f"{path} does not exist on the cluster" for path in seen.missing if path in about),
        *(f"{path} is not a file that you can read" for path in seen.unreadable if path in about),
        *(f"{path} is not a squashfs image" for path in seen.no_images if path in about),
    ]
    lacking = lacking_error(*([path for path in paths if path in about] for paths in (seen.no_pythons, seen.no_ngcs)))
    if not wrong and lacking:
        return Check(check.name, Verdict.FAILS, *lacking)
    if wrong:
        return Check(check.name, Verdict.FAILS, "; ".join(wrong), "Correct the path, or make it there.")
    return Check(check.name, Verdict.OK, f"on the cluster: {', '.join(sorted(path for path in about if path))}")


_DIRECTORIES = 10
"""About so many directories and links a job's directory begins with."""


def _space(plan: Plan, seen: Look) -> list[Check]:
    room, space = seen.room, seen.space
    if room is None or space is None or (space.free_kib is None and not space.quotas):
        return [Check("space", Verdict.CANNOT_TELL, f"the cluster did not say how much room {plan.directory} has")]
    needed = sum((len(content) + 1023) // 1024 for content in plan.files.values())
    other = "Make room there (`towline gc` says what could go), or set another `root` in the profile."
    if not room.writable:
        return [Check("space", Verdict.FAILS, f"{room.path} cannot be written to", other)]
    if why := space.lacking(needed, len(plan.files) + _DIRECTORIES):
        return [Check("space", Verdict.FAILS, why, other)]
    free = "" if space.free_kib is None else f"{amount(space.free_kib)} are free in {room.path}"
    evidence = "; ".join(filter(None, [free, *(quota.text for quota in space.quotas)]))
    return [Check("space", Verdict.OK, evidence)]


def _slurm(seen: Look, checks: list[Check]) -> list[Check]:
    """Slurm's own verdict. It looks at less than it enforces later: limits of QOS, for example, are not in it."""
    if seen.refusal is None:
        if seen.start is None:
            return [Check("slurm", Verdict.CANNOT_TELL, "sbatch --test-only did not say whether it would take the job")]
        return [Check("slurm", Verdict.OK, "sbatch --test-only takes the script")]
    evidence = f"sbatch --test-only says: {seen.refusal.said}"
    if seen.passing or seen.refusal.kind is RefusalKind.TEMPORARY:
        return [Check("slurm", Verdict.CANNOT_TELL, evidence)]
    return [Check("slurm", Verdict.FAILS, evidence, seen.refusal.remedy)]
