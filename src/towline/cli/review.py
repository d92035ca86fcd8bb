"""`towline review` and `towline confirm`: look at everything first, then have exactly that."""

from __future__ import annotations

import dataclasses
import hashlib
import os
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any

import click

from towline.cli.documents import Document, plan_as_dict, print_document, towline_exit
from towline.cli.doors import Job, open_engine
from towline.cli.guard import Ended
from towline.cli.loop import run as run_loop
from towline.cli.options import CONTEXT, examples, json_option
from towline.cli.plan import GroupedCommand, job_options, look_ahead
from towline.cli.run import Manner, read_secrets, send_and_follow, sending_options
from towline.cli.spec_input import read_spec
from towline.cli.terminal import clean
from towline.engine.events import Held
from towline.engine.redaction import redacted
from towline.models.errors import PlanRefused, UsageError

if TYPE_CHECKING:
    from towline.engine.planning.review import Review, SeenSecret
    from towline.models.plan import Plan
    from towline.models.spec import JobSpec

_REVIEWS = examples(
    "towline review --nodes 2 --gpus-per-node 8 --time 4h --secret HF_TOKEN -- python train.py",
    "towline review -f job.yaml --json",
    "towline review -f job.yaml --json --files",
)
_CONFIRMS = examples("towline confirm 0f3a9c51d27be684", "towline confirm 0f3a9c51d27be684 --detach --json")


@click.command(cls=GroupedCommand, epilog=_REVIEWS, context_settings={**CONTEXT, "allow_interspersed_args": False})
@click.option("--files", "bodies", is_flag=True, help="With --json: also the text of every file that would be sent.")
@job_options
def review(command: tuple[str, ...], *, bodies: bool, **values: Any) -> None:
    """Look at everything that a job needs and give it a hash, which `towline confirm` submits.

    Takes what `towline run` takes. Shows what `towline plan` shows, and whether the value of each secret is there;
    no value is ever shown. The exit status is 65 when something is missing; nothing can be confirmed then.
    """
    if bodies and not values["as_json"]:
        raise UsageError(
            "--files is for --json", fix="Add --json, or leave --files out: a person sees the files anyway."
        )
    from towline.engine import reviewing

    spec = read_spec(command, values, values["cluster"])
    sources = _seen_secrets(spec, values["secret"])
    secrets = look_ahead(spec, values["secret"])
    made, plan = run_loop(_review(spec, sources, secrets, values["cluster"]))
    lacking = reviewing.missing(made)
    status = PlanRefused.exit_status if plan.failures or lacking else 0
    if values["as_json"]:
        print_document({"review": review_as_dict(made, plan, lacking, bodies=bodies), "exit": towline_exit(status)})
    else:
        print(_text(made, plan, lacking), end="")
    if status:
        raise Ended(status)


def _seen_secrets(spec: JobSpec, given: Sequence[str]) -> tuple[SeenSecret, ...]:
    from towline.engine.submitting.secret_sources import seen_secrets, sources_for

    return seen_secrets(sources_for(spec, given), os.environ)


async def _review(
    spec: JobSpec, sources: Sequence[SeenSecret], secrets: dict[str, str | bytes], cluster: str | None
) -> tuple[Review, Plan]:
    from towline.engine import reviewing

    async with open_engine(cluster) as opened:
        return await reviewing.review(opened, spec, sources, secrets=secrets)


def review_as_dict(made: Review, plan: Plan, lacking: Sequence[str], *, bodies: bool) -> Document:
    """What decides stands first: who reads only the beginning has seen what a yes or no needs.

    The files are named by their hashes, for their text is a hundred times as long as all the rest.
    """
    planned = plan_as_dict(plan)
    text = planned.pop("files")
    return {
        "hash": None if plan.failures or lacking else made.hash,
        "missing": [
            *({"what": f"{check.name}: {check.evidence}", "fix": check.fix} for check in plan.failures),
            *({"what": f"secret: {name} has no value", "fix": _secret_fix(name)} for name in lacking),
        ],
        "notes": planned["notes"],
        "gpu_hours": planned["gpu_hours"],
        "estimate": planned["estimate"],
        "expires": made.expires,
        "cluster": made.cluster,
        "secrets": [dataclasses.asdict(secret) for secret in made.secrets],
        "images": [dataclasses.asdict(image) for image in plan.images],
        "plan": {**planned, **({"files": text} if bodies else {})},
        "files": [_file_as_dict(path, content) for path, content in plan.files.items()],
    }


def _file_as_dict(path: str, content: bytes) -> Document:
    return {"path": path, "size": len(content), "sha256": hashlib.sha256(content).hexdigest()}


def _secret_fix(name: str) -> str:
    return f"Set and export the variable {name}, or name another source: --secret {name}=file:PATH."


def _text(made: Review, plan: Plan, lacking: Sequence[str]) -> str:
    from towline.cli.dry_run import plan_sections

    lines = [plan_sections(plan)]
    if made.secrets:
        lines.append("Secrets\n" + "".join(f"  {_secret_line(secret)}\n" for secret in made.secrets))
    count = len(plan.failures) + len(lacking)
    if count:
        lines.append(f"Nothing was sent. {count} thing{'s are' if count > 1 else ' is'} missing; see `fails` above.\n")
    else:
        lines.append(
            f"Nothing was sent. For the next hour, this submits exactly that:\n  towline confirm {made.hash}\n"
        )
    return redacted("\n".join(lines))


def _secret_line(secret: SeenSecret) -> str:
    words = {True: "ok", False: "fails", None: "cannot-tell"}[secret.present]
    fix = f"  fix: {_secret_fix(secret.name)}" if secret.present is False else ""
    source = f" from {secret.source}" if secret.source else ""
    return f"{words:<11}  {clean(secret.name + source)}{fix}"


@click.command(epilog=_CONFIRMS, context_settings=CONTEXT)
@click.argument("review_hash", metavar="HASH")
@sending_options
@json_option
def confirm(review_hash: str, *, detach: bool, patience: float | None, no_input: bool, as_json: bool) -> None:
    """Submit exactly what `towline review` showed, and follow it as `towline run` does.

    Refused when the same words would do something else by now. Confirming a review again follows the job that there
    is already: one review never makes two jobs.
    """
    from towline.engine import reviewing

    reviewed = reviewing.find(review_hash)
    given = tuple(secret.option for secret in reviewed.secrets)
    manner = Manner(
        reviewed.cluster, detach, dry_run=False, as_json=as_json, secrets=given, no_input=no_input, patience=patience
    )
    values = read_secrets(reviewed.spec, manner)
    status = run_loop(_confirm(reviewed, manner, values))
    if status:
        raise Ended(status)


async def _confirm(reviewed: Review, manner: Manner, secrets: dict[str, str | bytes]) -> int:
    from towline.engine import reviewing

    async with open_engine(reviewed.cluster) as cluster:

        def send(told: Callable[[Held], None]) -> Awaitable[Job]:
            return reviewing.confirm(cluster, reviewed, secrets=secrets, patience=manner.longest_hold, told=told)

        return await send_and_follow(cluster, reviewed.job_id, send, manner)
