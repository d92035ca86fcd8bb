"""Checks of what brings data from elsewhere."""

from __future__ import annotations

from collections.abc import Sequence

from towline.engine.data.preparing import asking_python
from towline.engine.doctor.facts import Facts, Finding, Kind, cannot_tell, fails, ok


def staging(facts: Facts) -> Sequence[Finding]:
    """Where data is brought, and with what its sources are asked. Not everybody needs that: only a setting fails."""
    answer, profile = facts.answer, facts.profile
    if answer is None or not answer.partitions:
        return [cannot_tell("staging", "Slurm was not reached")]
    names = [part.name for part in answer.partitions]
    if profile.import_partition not in names:
        evidence = f"there is no partition {profile.import_partition} to bring data from elsewhere on"
        return [cannot_tell("staging", evidence, f"Set `import_partition` to one of {', '.join(names)}.")]
    version = answer.fact("python", "version")
    if not version and (asking := asking_python(profile)):
        evidence = f"`staging_python` names {asking}, which is not on the login host, or is no Python 3.6 or later"
        return [
            fails("staging", Kind.CLUSTER, evidence, "Correct `staging_python`, or leave it out for the host's own.")
        ]
    if not version:
        evidence = "there is no Python 3.6 on the login host, so that sources of data are first asked by a job"
        return [cannot_tell("staging", evidence, "Set `staging_python` to one that the cluster has.")]
    python = asking_python(profile) or f"Python {version}"
    return [ok("staging", f"data from elsewhere is brought on {profile.import_partition}; {python} asks its sources")]
