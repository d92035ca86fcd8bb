"""What a cluster says of itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.slurm.stubs import Slurm
from towline.models.site import QUEUED, Association, Limit, NodeKind, Partition, Qos, SiteFacts
from towline.slurm.calls import facts_call
from towline.slurm.durations import parse_limit
from towline.slurm.site import parse_facts, parse_gpus, parse_partitions

SCONTROL = (
    "PartitionName=batch AllowGroups=ALL AllowAccounts=ALL AllowQos=ALL AllocNodes=ALL Default=YES QoS=N/A "
    "DefaultTime=01:00:00 DisableRootJobs=NO ExclusiveUser=NO GraceTime=0 Hidden=NO MaxNodes=UNLIMITED "
    "MaxTime=04:00:00 MinNodes=0 LLN=NO MaxCPUsPerNode=UNLIMITED Nodes=node[1-4] PriorityJobFactor=1 PriorityTier=1 "
    "RootOnly=NO ReqResv=NO OverSubscribe=NO OverTimeLimit=NONE PreemptMode=OFF State=UP TotalCPUs=256 TotalNodes=4 "
    "SelectTypeParameters=NONE JobDefaults=(null) DefMemPerNode=UNLIMITED MaxMemPerNode=UNLIMITED TRES=cpu=256,node=4\n"
    "PartitionName=long Default=NO DefaultTime=NONE MaxNodes=2 MaxTime=14-00:00:00 State=DRAIN TotalNodes=1 "
    "PriorityTier=3 PreemptMode=REQUEUE "
    "MaxCPUsPerNode=6 QoS=limited AllowGroups=staff AllowAccounts=research,teaching DenyQos=free\n"
    "PartitionName=free Default=NO DefaultTime=NONE MaxNodes=1 MaxTime=UNLIMITED Nodes=(null) State=UP TotalNodes=0\n"
)
SINFO = (
    "batch|3|64|512000|rack1,nvme|gpu:h100:8(S:0-1)\n"
    "batch|1|32|256000+|(null)|gpu:a100:4(S:2,4,7),shard:8\n"
    "long|1|8|16000|(null)|(null)\n"
    "Welcome to the cluster | 3\n"
)
ASSOCIATIONS = "research||limited,normal|normal|02:00:00|cpu=-1|mem=100G|50|0\nteaching|batch|normal||||||\na notice\n"
QOSES = "normal|||||||\nlimited||gres/gpu=4|node=2|||8|\nlong|2-00:00:00||||PartitionTimeLimit||90\n"
CONFIG = (
    "AccountingStorageEnforce = associations,limits\n"
    "Configuration data as of 2026-11-30T00:28:33\n"
    "ClusterName             = lab\n"
    "MessageTimeout          = 25 sec\n"
    "SLURM_VERSION           = 22.05.8\n"
)


def test_partitions() -> None:
    batch, long, free = parse_partitions(SCONTROL, SINFO)
    assert batch == Partition(
        name="batch",
        default=True,
        max_time=4 * 3600,
        default_time=3600,
        nodes=4,
        gpus_per_node=8,
        gpu_types=("h100", "a100"),
        cpus_per_node=64,
        memory_per_node=512000,
        kinds=(
            NodeKind(3, 64, 512000, (("h100", 8),), ("rack1", "nvme")),
            NodeKind(1, 32, 256000, (("a100", 4),)),
        ),
    )
    assert (batch.preempt_mode, batch.priority_tier) == ("OFF", 1)
    assert (long.preempt_mode, long.priority_tier) == ("REQUEUE", 3)
    assert (long.available, long.max_time, long.max_nodes, long.default_time) == (False, 14 * 86400, 2, None)
    assert (long.gpus_per_node, long.gpu_types, long.cpus_per_node) == (0, (), 8)
    assert (long.max_cpus_per_node, long.qos, long.groups) == (6, "limited", ("staff",))
    assert (long.accounts, long.qoses, long.denied_qoses) == (("research", "teaching"), None, ("free",))
    assert (free.max_time, free.nodes, free.gpus_per_node) == (None, 0, 0)


@pytest.mark.parametrize(
    ("gres", "expected"),
    [
        ("gpu:h100:8(S:0-1)", (("h100", 8),)),
        ("gpu:8", (("", 8),)),
        ("gpu", (("", 1),)),
        ("gpu:a100:4(S:2,4,7)", (("a100", 4),)),
        ("gpu:a100:2(S:0),gpu:a100:2(S:1),nvme:no_consume:4K", (("a100", 4),)),
        ("gpu:h100:4,gpu:1g.10gb:7(IDX:0-1,3)", (("h100", 4), ("1g.10gb", 7))),
        ("craynetwork:4,gpu:2", (("", 2),)),
        ("shard:h100:8", ()),
        ("gpu:tesla:no_consume:2", (("tesla", 2),)),
        ("(null)", ()),
        ("", ()),
        ("N/A", ()),
    ],
)
def test_gpus_of_a_node(gres: str, expected: tuple[tuple[str, int], ...]) -> None:
    assert parse_gpus(gres) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("04:00:00", 14400),
        ("1-00:00:00", 86400),
        ("14-12:30:15", 14 * 86400 + 12 * 3600 + 30 * 60 + 15),
        ("30:00", 1800),
        ("UNLIMITED", None),
        ("INFINITE", None),
        ("NONE", None),
        ("", None),
    ],
)
def test_limits(text: str, expected: int | None) -> None:
    assert parse_limit(text) == expected


def test_the_facts_script_and_its_reader(tmp_path: Path) -> None:
    slurm = Slurm(tmp_path)
    slurm.set(**{"scontrol.config": CONFIG, "scontrol.partition": SCONTROL, "sinfo.text": SINFO})
    slurm.set(**{"scontrol.licenses": "LicenseName=matlab Total=5 Used=0 Free=5 Reserved=0 Remote=no\n"})
    slurm.set(**{"sacctmgr.associations": ASSOCIATIONS, "sacctmgr.qos": QOSES, "sacctmgr.user": "research\n"})
    ran = slurm.run(facts_call(), tmp_path / "call")
    facts = parse_facts(ran.out, asked=7.0)
    assert (facts.cluster, facts.version, facts.message_timeout, facts.asked) == ("lab", "22.05.8", 25, 7.0)
    assert [part.name for part in facts.partitions] == ["batch", "long", "free"]
    assert facts.enforces == ("associations", "limits")
    assert facts.default_account == "research"
    assert facts.groups
    assert facts.licenses == (("matlab", 5),)
    assert facts.runtimes == ("pyxis",)
    assert facts.associations == (
        Association(
            "research",
            "",
            ("limited", "normal"),
            "normal",
            7200,
            (Limit("group", "mem", 102400), Limit("user", QUEUED, 50)),
        ),
        Association("teaching", "batch", ("normal",)),
    )
    assert facts.qos("limited") == Qos(
        "limited", None, (Limit("job", "gres/gpu", 4), Limit("user", "node", 2), Limit("user", QUEUED, 8))
    )
    assert facts.qos("long") == Qos("long", 2 * 86400, (Limit("group", QUEUED, 90),), ("PartitionTimeLimit",))
    assert SiteFacts.from_json(facts.to_json()) == facts


def test_a_site_without_accounting_tells_the_rest(tmp_path: Path) -> None:
    slurm = Slurm(tmp_path)
    slurm.set(**{"scontrol.config": CONFIG, "scontrol.partition": SCONTROL, "sinfo.text": SINFO})
    facts = parse_facts(slurm.run(facts_call(), tmp_path / "call").out)
    assert (facts.associations, facts.qoses, facts.default_account, facts.licenses) == (None, None, "", None)
    assert len(facts.partitions) == 3


def test_a_query_that_failed_is_not_an_empty_cluster(tmp_path: Path) -> None:
    slurm = Slurm(tmp_path)
    slurm.set(**{"scontrol.config": CONFIG, "sinfo.text": SINFO})
    ran = slurm.run(facts_call(), tmp_path / "call")
    with pytest.raises(ValueError, match="No such file"):
        parse_facts(ran.out)
    with pytest.raises(ValueError, match="broke off"):
        parse_facts(ran.out.replace("@end", ""))
