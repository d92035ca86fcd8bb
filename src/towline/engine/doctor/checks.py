"""All checks, in the order in which a person would look, and what they come to."""

from __future__ import annotations

from collections.abc import Sequence

from towline.engine.doctor import containers, data, here, job, network, scheduler, storage
from towline.engine.doctor.facts import Check, Facts, Finding
from towline.models.plan import Verdict

CHECKS: tuple[Check, ...] = (
    here.ssh_client,
    here.key,
    here.agent,
    network.name,
    network.port,
    network.host_key,
    network.login,
    network.shell,
    network.max_sessions,
    scheduler.slurm,
    scheduler.cluster_name,
    scheduler.partition,
    scheduler.limits,
    scheduler.account,
    scheduler.accounting,
    scheduler.min_job_age,
    scheduler.requeue,
    scheduler.gpu_request,
    containers.pyxis,
    containers.enroot,
    containers.enroot_space,
    containers.credentials,
    data.staging,
    storage.root,
    storage.root_shared,
    storage.quota,
    storage.inodes,
    storage.space,
    job.deep,
)


def examine(facts: Facts) -> tuple[Finding, ...]:
    """Every check's findings."""
    return tuple(finding for check in CHECKS for finding in check(facts))


def exit_status(findings: Sequence[Finding]) -> int:
    """0 when nothing fails, else the status that belongs to the kind of the first failure."""
    return next((each.kind.value for each in findings if each.verdict is Verdict.FAILS), 0)
