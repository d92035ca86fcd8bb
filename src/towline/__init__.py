"""Towline runs containerised GPU jobs on Slurm clusters from any machine that can `ssh` to a login node.

The names below are the public Python API; they are imported when first used, so that the command line starts fast.
"""

from __future__ import annotations

TYPE_CHECKING = False  # as checkers know it from typing, whose import would take longer than the rest of --help

if TYPE_CHECKING:
    from towline.engine.cluster import AsyncCluster
    from towline.engine.configuration import read_spec
    from towline.engine.events import LogChoice
    from towline.engine.facade import Cluster, Job
    from towline.engine.job import AsyncJob
    from towline.models.dependency import Dependency
    from towline.models.errors import TowlineError
    from towline.models.job import Attempt, JobRecord, JobState
    from towline.models.roles import Role
    from towline.models.spec import JobSpec, Mail, Mount, Resources, Resume

__version__ = "0.1.0"

__all__ = [
    "AsyncCluster",
    "AsyncJob",
    "Attempt",
    "Cluster",
    "Dependency",
    "Job",
    "JobRecord",
    "JobSpec",
    "JobState",
    "LogChoice",
    "Mail",
    "Mount",
    "Resources",
    "Resume",
    "Role",
    "TowlineError",
    "__version__",
    "read_spec",
]

_HOMES = {
    "AsyncCluster": "towline.engine.cluster",
    "AsyncJob": "towline.engine.job",
    "Attempt": "towline.models.job",
    "Cluster": "towline.engine.facade",
    "Dependency": "towline.models.dependency",
    "Job": "towline.engine.facade",
    "JobRecord": "towline.models.job",
    "JobSpec": "towline.models.spec",
    "JobState": "towline.models.job",
    "LogChoice": "towline.engine.events",
    "Mail": "towline.models.spec",
    "Mount": "towline.models.spec",
    "Resources": "towline.models.spec",
    "Resume": "towline.models.spec",
    "Role": "towline.models.roles",
    "TowlineError": "towline.models.errors",
    "read_spec": "towline.engine.configuration",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'towline' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)
