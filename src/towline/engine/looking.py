"""What a plan can only know from the cluster, looked at without sending the job: are its paths there?"""

from __future__ import annotations

import dataclasses

from towline.engine.outcomes import check_ending, last_words
from towline.engine.session import Session
from towline.engine.submission import required_paths
from towline.models.plan import Check, Plan, Verdict
from towline.slurm.calls import check_call
from towline.slurm.submission import ScriptExit, SubmitAnswer, environment_error, parse_submission


async def looked_at(session: Session, plan: Plan) -> Plan:
    """The plan with a verdict for every path; nothing on the cluster is changed.

    Raises:
        Unreachable, OutcomeUnknown, WaitTimedOut: the cluster could not be asked.
    """
    required = required_paths(plan)
    if not required:
        return plan
    outcome = await session.call(check_call(required, session.profile.setup))
    check_ending(outcome, "looking at the job's paths")
    said = last_words(outcome.stderr)
    if error := environment_error(outcome.exit_code or 0, said):
        raise error
    answer = parse_submission(outcome.exit_code or 0, outcome.stdout.decode("utf-8", "replace"), said)
    if answer.exit not in (ScriptExit.UNCLEAR, ScriptExit.OK, ScriptExit.PATHS_MISSING):
        return plan
    return dataclasses.replace(plan, checks=tuple(_judged(check, plan, answer) for check in plan.checks))


def _judged(check: Check, plan: Plan, answer: SubmitAnswer) -> Check:
    if check.verdict is not Verdict.ON_SUBMIT:
        return check
    about = {plan.spec.image} if check.name == "image" else set(plan.required_paths) - {plan.spec.image}
    wrong = [
        *(f"{path} does not exist on the cluster" for path in answer.missing if path in about),
        *(f"{path} is not a file that you can read" for path in answer.unreadable if path in about),
        *(f"{path} is not a squashfs image" for path in answer.no_images if path in about),
    ]
    if wrong:
        return Check(check.name, Verdict.FAILS, "; ".join(wrong), "Correct the path, or make it there.")
    return Check(check.name, Verdict.OK, f"on the cluster: {', '.join(sorted(path for path in about if path))}")
