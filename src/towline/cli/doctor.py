"""`towline doctor`: what keeps the cluster from being used, and what mends it."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from towline.cli.documents import print_document, towline_exit
from towline.cli.guard import Ended
from towline.cli.loop import asking, run
from towline.cli.options import cluster_option, examples, json_option
from towline.cli.output import BOLD, GREEN, RED, YELLOW, StatusLine, paint
from towline.cli.terminal import clean, clean_lines
from towline.models.errors import UsageError
from towline.models.plan import Verdict
from towline.models.values import parse_walltime

if TYPE_CHECKING:
    from towline.engine.doctor.examination import Doctor
    from towline.engine.doctor.facts import Finding

_COLOURS = {Verdict.OK: GREEN, Verdict.FAILS: RED, Verdict.CANNOT_TELL: YELLOW}
_EXAMPLES = examples("towline doctor", "towline doctor --deep --wait 30m", "towline doctor --fix --json")


@click.command(epilog=_EXAMPLES)
@click.option("--deep", is_flag=True, help="Also run a job of a minute: what a node and a container see.")
@click.option("--wait", metavar="TIME", default="5m", show_default=True, help="How long that job may wait to start.")
@click.option("--fix", is_flag=True, help="Apply the fixes that can do no harm, after asking.")
@click.option("--yes", is_flag=True, help="Apply them without asking.")
@cluster_option
@json_option
def doctor(*, deep: bool, wait: str, fix: bool, yes: bool, cluster: str | None, as_json: bool) -> None:
    """Check everything that a job needs, and say how to mend what is broken.

    Each check says what it saw; a check that fails has the steps that mend it. The exit status tells the kind of the
    first failure (docs/doctor.md).
    """
    seconds = _seconds(wait)
    status = run(_doctor(cluster, deep=deep, seconds=seconds, fix=fix or yes, yes=yes, as_json=as_json))
    if status:
        raise Ended(status)


async def _doctor(cluster: str | None, *, deep: bool, seconds: int, fix: bool, yes: bool, as_json: bool) -> int:
    from towline.engine.doctor.examination import Doctor

    line = StatusLine(quiet=as_json)
    patient = Doctor.open(cluster)
    for note in patient.notes:
        line.say(note)
    findings = await _examined(patient, deep=deep, seconds=seconds, line=line)
    mended: list[str] = []
    if fix and (mended := await _mend(patient, findings, yes=yes, line=line)):
        findings = await _examined(patient, deep=deep, seconds=seconds, line=line)
    status = patient.exit_status(findings)
    if as_json:
        checks = [finding_as_dict(each) for each in findings]
        print_document(
            {"doctor": {"cluster": patient.name, "checks": checks, "mended": mended}, "exit": towline_exit(status)}
        )
    else:
        print(findings_text(findings), end="")
    return status


async def _examined(patient: Doctor, *, deep: bool, seconds: int, line: StatusLine) -> tuple[Finding, ...]:
    line.update(f"looking at {patient.name}" + (", with a job of a minute" if deep else ""))
    findings = await patient.examine(deep_seconds=seconds if deep else None)
    line.clear()
    return findings


def _agreed(what: str) -> bool:
    with asking():
        return sys.stdin.isatty() and click.confirm(f"{what}?", err=True)


async def _mend(patient: Doctor, findings: Sequence[Finding], *, yes: bool, line: StatusLine) -> list[str]:
    done: list[str] = []
    for repair in patient.repairs(findings):
        what = patient.described(repair)
        if not yes and not _agreed(what):
            line.say(f"not done: {what}" + ("" if sys.stdin.isatty() else " (give --yes)"))
            continue
        if problem := await patient.apply(repair):
            line.say(f"failed: {what}: {problem}", RED)
        else:
            line.say(f"done: {what}")
            done.append(what)
    return done


def finding_as_dict(finding: Finding) -> dict[str, object]:
    """One check as `--json` prints it."""
    return {
        "id": finding.id,
        "host": finding.host,
        "verdict": finding.verdict.value,
        "evidence": finding.evidence,
        "fix": finding.fix,
        "kind": finding.kind.name.lower(),
        "can_be_applied": finding.repair is not None,
    }


def findings_text(findings: Sequence[Finding]) -> str:
    """The checks as a table, with the fix below each that fails."""
    names = [f"{each.id} {each.host}".strip() for each in findings]
    width = max(map(len, names), default=0)
    lines: list[str] = []
    for name, each in zip(names, findings, strict=True):
        mark = paint(f"{each.verdict.value:<11}", _COLOURS[each.verdict], sys.stdout)
        lines.append(f"{mark}  {name:<{width}}  {clean(each.evidence)}")
        if each.fix and each.verdict is not Verdict.OK:
            steps = clean_lines(each.fix)
            labels = [paint("fix:", BOLD, sys.stdout), *["    "] * len(steps)]
            lines += [f"{'':13}{label} {step}" for label, step in zip(labels, steps, strict=False)]
    return "\n".join([*lines, "", _conclusion(findings)]) + "\n"


def _conclusion(findings: Sequence[Finding]) -> str:
    failed = [each for each in findings if each.verdict is Verdict.FAILS]
    if not failed:
        return "Nothing is broken."
    names = ", ".join(dict.fromkeys(each.id for each in failed))
    return f"{len(failed)} check{'s fail' if len(failed) > 1 else ' fails'}: {names}."


def _seconds(text: str) -> int:
    try:
        return parse_walltime(text)
    except ValueError as error:
        raise UsageError(f"--wait: {error}") from None
