"""Pending reasons in plain words."""

from __future__ import annotations

import pytest

from towline.slurm.reasons import explain_reason

WAITING = [
    "None", "", "Resources", "Priority", "Dependency", "BeginTime", "Licenses", "Reservation", "Prolog",
    "ReqNodeNotAvail", "ReqNodeNotAvail, UnavailableNodes:node[1-3,7]", "ReqNodeNotAvail, Reserved for maintenance",
    "Nodes required for job are DOWN, DRAINED or reserved for jobs in higher priority partitions",
    "Nodes required for job are DOWN, DRAINED, REBOOTING or reserved for jobs in higher priority partitions",
    "QOSGrpCpuLimit", "QOSGrpGRES", "QOSGrpGRESRunMinutes", "AssocGrpCPUMinutesLimit", "AssocGrpBilling",
    "QOSMaxJobsPerUserLimit", "QOSMaxGRESPerUser", "AssocMaxJobsLimit", "MaxGRESPerAccount", "QOSMaxNodePerUserLimit",
    "JobArrayTaskLimit", "PartitionDown", "PartitionInactive", "NodeDown", "Cleaning", "BurstBufferStageIn",
]  # fmt: skip
BLOCKED = [
    "DependencyNeverSatisfied", "JobHeldUser", "JobHeldAdmin", "launch failed requeued held", "JobHoldMaxRequeue",
    "user env retrieval failed requeued held", "job requeued in held state", "PartitionNodeLimit",
    "PartitionTimeLimit", "PartitionConfig", "BadConstraints", "InvalidAccount", "InvalidQOS", "AccountNotAllowed",
    "QOSNotAllowed", "QOSMaxWallDurationPerJobLimit", "QOSMaxGRESPerJob", "QOSMaxCpuPerJobLimit", "QOSMaxGRESPerNode",
    "AssocMaxCpuMinutesPerJobLimit", "AssocMaxWallDurationPerJobLimit", "QOSMinGRES", "QOSMinCpuNotSatisfied",
    "MaxMemPerLimit", "ReservationDeleted", "Reservation exam was deleted", "DeadLine",
]  # fmt: skip


@pytest.mark.parametrize("word", WAITING)
def test_reasons_that_pass_by_themselves(word: str) -> None:
    reason = explain_reason(word)
    assert not reason.blocked
    assert reason.sentence.endswith(".")


@pytest.mark.parametrize("word", BLOCKED)
def test_reasons_that_never_pass_have_a_way_out(word: str) -> None:
    reason = explain_reason(word)
    assert reason.blocked
    assert reason.sentence.endswith(".")
    assert reason.way_out.endswith(".")


def test_an_unknown_reason_is_passed_on() -> None:
    reason = explain_reason("SomethingNewIn27")
    assert (reason.blocked, reason.sentence) == (False, "Slurm says: SomethingNewIn27")
