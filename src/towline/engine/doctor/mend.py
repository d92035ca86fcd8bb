"""Applying the safe fixes: modes made private, and the root made."""

from __future__ import annotations

import os
from collections.abc import Sequence

from towline.config.profile import ClusterProfile
from towline.engine.doctor.facts import Finding, Repair
from towline.engine.doctor.gather import Opener
from towline.engine.reaching import open_remote
from towline.models.errors import TowlineError
from towline.models.plan import Verdict
from towline.remote.base import Operation

_THERE = {
    "chmod-there": 'chmod "$([ -d "$1" ] && echo 700 || echo 600)" -- "$1"',
    "mkdir-there": 'umask 077; mkdir -p -- "$1"',
}


def repairs(findings: Sequence[Finding]) -> tuple[Repair, ...]:
    """The fixes of failed checks that can be applied without harm."""
    found = [each.repair for each in findings if each.verdict is Verdict.FAILS and each.repair]
    return tuple(dict.fromkeys(found))


def described(repair: Repair) -> str:
    """What a repair does, for the question whether it may."""
    where = "" if repair.action == "chmod-here" else " on the cluster"
    return f"{'mkdir' if repair.action.startswith('mkdir') else 'make private:'} {repair.path}{where}"


async def apply(profile: ClusterProfile, repair: Repair, *, opener: Opener = open_remote) -> str:
    """Apply one; the result is what went wrong, or nothing."""
    if repair.action == "chmod-here":
        try:
            os.chmod(repair.path, 0o600)
        except OSError as error:
            return error.strerror or str(error)
        return ""
    remote = opener(profile)
    try:
        outcome = await remote.run(Operation("mend", _THERE[repair.action], (repair.path,)))
    except TowlineError as error:
        return error.what
    finally:
        await remote.close()
    return "" if outcome.ok else outcome.stderr.decode(errors="replace").strip() or outcome.detail
