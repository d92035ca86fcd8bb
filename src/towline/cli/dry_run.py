"""What `run --dry-run` shows a person: checks, files, the command, and the batch script byte for byte."""

from __future__ import annotations

import shlex
import sys

from towline.cli.output import BOLD, GREEN, RED, YELLOW, paint, size
from towline.cli.terminal import clean
from towline.engine.redaction import redacted
from towline.models.plan import Check, Plan, Verdict

_COLOURS = {Verdict.OK: GREEN, Verdict.FAILS: RED, Verdict.CANNOT_TELL: YELLOW, Verdict.ON_SUBMIT: ""}


def plan_text(plan: Plan) -> str:
    """The whole plan; nothing of it was sent."""
    sections = {
        f"Checks of job {plan.job_id} ({plan.spec.name})": _checks(plan),
        f"Files below {clean(plan.directory)}": [
            *(f"{size(len(content)):>10}  {clean(path)}" for path, content in plan.files.items()),
            *([f"{'secret':>10}  secrets (the values of {', '.join(plan.spec.secrets)})"] if plan.spec.secrets else []),
        ],
        "Command on the login host": [clean(shlex.join(plan.sbatch))],
        "Batch script (script/batch)": _script(plan.script),
    }
    blocks = [f"{paint(title, BOLD, sys.stdout)}\n{_indented(lines)}" for title, lines in sections.items()]
    return redacted("\n".join([*blocks, f"{_conclusion(plan)}\n"]))


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
