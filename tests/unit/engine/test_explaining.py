"""Why a job waits: the sentences behind each kind of reason."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.engine.records import record
from towline.engine.watching.explaining import Case, explain
from towline.models.job import Attempt, JobState
from towline.models.site import Association, Limit, NodeKind, Partition, Qos, SiteFacts
from towline.models.spec import JobSpec
from towline.slurm.look import NodesNow
from towline.slurm.queue import Queue, Reservation, parse_queue

H100 = NodeKind(4, 32, 128_000, (("h100", 8),))
SITE = SiteFacts(
    "lab",
    "22.05.8",
    (
        Partition("batch", max_time=86400, max_nodes=4, nodes=4, gpus_per_node=8, cpus_per_node=32, kinds=(H100,)),
        Partition("short", max_time=86400, nodes=4, gpus_per_node=8, cpus_per_node=32, kinds=(H100,)),
    ),
    enforces=("associations", "limits", "qos"),
    default_account="research",
    associations=(Association("research", default_qos="normal"),),
    qoses=(Qos("normal", limits=(Limit("user", "gres/gpu", 16),)),),
)


def now(partition: str, count: int, *, idle: bool = False) -> NodesNow:
    return NodesNow(partition, NodeKind(count, 32, 128_000, (("h100", 8),)), idle, shared=False)


def case(reason: str, asked: int = 2, *, job: dict[str, str] | None = None, **seen: Any) -> Case:
    spec = JobSpec.build(
        command=["true"], partition=["batch"], resources={"nodes": asked, "gpus_per_node": 8, "time": "4h"}
    )
    waiting = record(state=JobState.PENDING, attempts=(Attempt(slurm_id="7", reason=reason),))
    return Case(waiting, spec, Queue(job={"Partition": "batch", **(job or {})}, **seen), SITE)


def test_nodes_that_are_free_jobs_in_front_and_the_forecast() -> None:
    found = explain(
        case(
            "Priority",
            free=(now("batch", 3), now("batch", 1, idle=True)),
            ahead=(5, 12, 1),
            running=(2, 3, 7200),
            start_in=5400,
            nodes="node[1-2]",
            job={"Priority": "4294"},
        )
    )
    assert found.facts == (
        "1 of 4 nodes of batch that fit the job are free; it asks for 2 nodes",
        "5 jobs in front of it ask for 12 nodes, 1 of them yours",
        "2 jobs there run on 3 nodes; the first has to end within 2 hours",
        "its priority is 4294",
    )
    assert (found.start_in, found.nodes, found.blocked) == (5400, "node[1-2]", False)
    assert found.sooner == ("with 1 node instead of 2 it could start on what is free now",)


def test_another_partition_that_has_room_is_named() -> None:
    found = explain(case("Resources", free=(now("batch", 4), now("short", 4, idle=True))))
    assert found.sooner == ("partition short would take it and has 4 nodes free",)


def test_a_maintenance_in_the_way_and_the_walltime_that_fits_before_it() -> None:
    maintenance = Reservation("mt", 7300, 90_000, "node[1-4]", ("MAINT",))
    far = Reservation("later", 90_000, 99_000, "node1")
    found = explain(case("ReqNodeNotAvail, Reserved for maintenance", reservations=(far, maintenance)))
    assert found.facts == ("a maintenance of node[1-4] begins in 2 hours and lasts until 25 hours from now",)
    assert found.sooner == ("with a walltime below 2 hours it could run before that",)


def test_limits_are_told_with_their_numbers() -> None:
    found = explain(case("QOSMaxGRESPerUser", own=(2, 2, 8, 12)))
    assert (
        "QOS normal for all jobs of yours together allows 16 GPUs; your running jobs have 2 nodes, 8 CPUs and 12 GPUs "
        "in 2 jobs"
    ) in found.facts
    assert not found.blocked


def test_jobs_that_it_waits_for_are_named() -> None:
    other = record("a00000002", name="prepare", state=JobState.RUNNING, attempts=(Attempt(slurm_id="5"),))
    waits = case("Dependency", job={"Dependency": "afterok:5(unfulfilled),afterany:6_*(failed)"})
    found = explain(Case(waits.record, waits.spec, waits.seen, SITE, {"5": other}))
    assert found.facts == (
        "it starts after the success of job a00000002 (prepare, Slurm job 5), which is running",
        "it starts after the end of Slurm job 6; Slurm says failed",
    )


@pytest.mark.parametrize(
    "reason",
    [
        "DependencyNeverSatisfied",
        "JobHeldAdmin",
        "JobHeldUser",
        "launch failed requeued held",
        "PartitionNodeLimit",
        "PartitionTimeLimit",
        "BadConstraints",
        "ReservationDeleted",
        "InvalidQOS",
        "QOSMaxWallDurationPerJobLimit",
        "JobHoldMaxRequeue",
    ],
)
def test_what_never_starts_by_itself_says_so_with_the_way_out(reason: str) -> None:
    found = explain(case(reason, asked=9, start_in=60, free=(now("batch", 4, idle=True),)))
    assert found.blocked
    assert found.way_out
    assert (found.start_in, found.sooner) == (None, ())


def test_limits_of_the_partition_are_told_with_what_is_asked() -> None:
    assert "partition batch allows 4 nodes; the job asks for 9" in explain(case("PartitionNodeLimit", asked=9)).facts
    assert "partition batch allows 1-00:00:00; the job asks for 04:00:00" in explain(case("PartitionTimeLimit")).facts


def test_a_cluster_that_says_nothing_still_gives_the_reason() -> None:
    found = explain(Case(case("Priority").record, case("Priority").spec, Queue()))
    assert found.sentence
    assert found.facts == ()


ANSWER = """@fact place
>now 1796035672
@query 0 job - -
>JobId=22 JobName=a b=c UserId=alice(2001) Priority=4294 JobState=PENDING Reason=ReqNodeNotAvail,_Reserved \
Dependency=(null) StartTime=1796044620 Partition=batch,short SchedNodeList=node[1-4] NumNodes=4-4
@query 0 ahead - -
>1|4|1
@query 0 ends - -
>0|0|
@query 0 own - -
>2|3|12|16
@query 0 free - -
>batch|4|plnd|32|128000|gpu:h100:8
>cpu|1|idle|16|64000|(null)
@query 0 reservations - -
>ReservationName=mt StartTime=1796037468 EndTime=1796041068 Nodes=node[1-4] PartitionName=(null) Flags=MAINT,IGNORE_JOBS
@end
""".replace("\\\n", "")


def test_the_answer_of_the_script_as_slurm_22_05_gives_it() -> None:
    seen = parse_queue(ANSWER)
    assert (seen.start_in, seen.nodes, seen.ahead, seen.own) == (8948, "node[1-4]", (1, 4, 1), (2, 3, 12, 16))
    assert seen.running == (0, 0, None)
    assert [(each.name, each.start_in, each.maintenance) for each in seen.reservations] == [("mt", 1796, True)]
    assert [(each.partition, each.idle) for each in seen.free] == [("batch", False), ("cpu", True)]
    assert seen.job["Partition"] == "batch,short"
    with pytest.raises(ValueError):
        parse_queue(ANSWER.replace("@end\n", ""))
