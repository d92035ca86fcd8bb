"""What `run --dry-run` shows a person: checks, files, the command, and the batch script byte for byte."""

from __future__ import annotations

import shlex
import sys
import time
from collections.abc import Iterator

from towline.cli.output import BOLD, GREEN, RED, YELLOW, duration, paint, size
from towline.cli.terminal import clean
from towline.engine.redaction import redacted
from towline.models.plan import Check, Estimate, Plan, Verdict

NOW = 15
"""Seconds within which a start is one that needs no waiting."""

_COLOURS = {Verdict.OK: GREEN, Verdict.FAILS: RED, Verdict.CANNOT_TELL: YELLOW, Verdict.ON_SUBMIT: ""}


def plan_text(plan: Plan) -> str:
    """The whole plan; nothing of it was sent."""
    return redacted(f"{plan_sections(plan)}\n{_conclusion(plan)}\n")


def plan_sections(plan: Plan) -> str:
    """What a plan says, section by section."""
    sections = {
        f"Checks of job {plan.job_id} ({plan.spec.name})": _checks(plan),
        "Start and size": _outlook(plan),
        f"Files below {clean(plan.directory)}": [
            *(f"{size(len(content)):>10}  {clean(path)}" for path, content in plan.files.items()),
            *([f"{'secret':>10}  secrets (the values of {', '.join(plan.spec.secrets)})"] if plan.spec.secrets else []),
        ],
        "Command on the login host": [clean(shlex.join(plan.sbatch))],
        "Batch script (script/batch)": _script(plan.script),
    }
    blocks = [f"{paint(title, BOLD, sys.stdout)}\n{_indented(lines)}" for title, lines in sections.items()]
    return redacted("\n".join(blocks))


def _outlook(plan: Plan) -> list[str]:
    """When it would start, what it may use, and what was decided for the user."""
    wanted = plan.spec.resources
    lines: list[str] = [*plan.notes]
    if plan.estimate:
        lines += _estimate(plan.estimate)
    if wanted.time:
        unit, hours, each = ("GPU", plan.gpu_hours, plan.gpus) if plan.gpus else ("node", plan.node_hours, plan.nodes)
        what = f"{each} {unit}{'s' if each > 1 else ''} for {duration(wanted.time)}"
        times = f"{plan.tasks} tasks of " if plan.tasks > 1 else ""
        lines.append(f"at most {hours:.4g} {unit}-hours: {times}{what}")
    if plan.facts_asked:
        lines.append(f"facts about the cluster are {duration(max(0.0, time.time() - plan.facts_asked))} old")
    return [clean(line) for line in lines]


def _estimate(found: Estimate) -> Iterator[str]:
    if found.start_in is not None:
        when = "now" if found.start_in < NOW else f"in {duration(found.start_in)}"
        where = f" in partition {found.partition}" if found.partition else ""
        yield f"Slurm would start it {when} on {found.nodes}{where}"
    if found.fitting:
        yield f"{found.idle} of {found.fitting} nodes that can take it are free, {found.shared} are used in part"
    if found.waits:
        waits = found.waits
        jobs = f"your last {waits.jobs} jobs like this" if waits.jobs > 1 else "your last job like this"
        yield f"{jobs} waited {duration(waits.median)} (median), {duration(waits.longest)} at most"


def _script(text: str) -> list[str]:
    return [clean(line) if sys.stdout.isatty() else line for line in text.splitlines()]


def _checks(plan: Plan) -> list[str]:
    lines: list[str] = []
    width = max((len(check.name) for check in plan.checks), default=0)
    for check in plan.checks:
        lines += _check_lines(check, width)
    return lines


def _check_lines(check: Check, width: int) -> list[str]:
    mark = paint(f"{check.verdict.value:<11}", _COLOURS[check.verdict], sys.stdout)
    lines = [f"{mark}  {check.name:<{width}}  {clean(check.evidence)}"]
    if check.fix and check.verdict is Verdict.FAILS:
        lines.append(f"{'':<11}  {'':<{width}}  fix: {clean(check.fix)}")
    return lines


def _indented(lines: list[str]) -> str:
    return "".join(f"  {line}".rstrip() + "\n" for line in lines)


def _conclusion(plan: Plan) -> str:
    if not plan.failures:
        return "Dry run: nothing was sent."
    count = len(plan.failures)
    return f"Dry run: nothing was sent. {count} check{'s fail' if count > 1 else ' fails'}; the job would be refused."
