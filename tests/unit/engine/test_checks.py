"""What is refused before anything is sent, and what the user is told then."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from towline.config.profile import ClusterProfile
from towline.engine.planning.checks import check_spec
from towline.engine.planning.defaults import fill_in, join_comments, with_preset
from towline.models.plan import Check, Verdict
from towline.models.site import QUEUED, Association, Limit, NodeKind, Partition, Per, Qos, SiteFacts
from towline.models.spec import JobSpec

FACTS = SiteFacts(
    "lab",
    "22.05.8",
    (
        Partition("batch", True, True, 4 * 3600, 3600, None, 4, 8, ("h100",), 32, 128000),
        Partition("short", False, True, 300, 300, 2, 4, 8, ("h100",), 32, 128000),
        Partition("cpu", False, True, 4 * 3600, 3600, None, 1, 0, (), 16, 64000),
        Partition("long", False, True, None, None, None, 4, 8, ("h100",), 32, 128000),
        Partition("closed", False, False, None, 3600, None, 4, 8, ("h100",), 32, 128000),
    ),
)


PROFILE = ClusterProfile(name="lab", hosts=("login",), root="/lustre/me")


def checks(facts: SiteFacts = FACTS, **fields: Any) -> dict[str, Check]:
    spec = JobSpec.build(**{"command": ["true"], "image": "/i.sqsh", **fields})
    return {check.name: check for check in check_spec(fill_in(spec, PROFILE, facts).spec, facts, ())}


def failing(facts: SiteFacts = FACTS, **fields: Any) -> dict[str, Check]:
    return {name: check for name, check in checks(facts, **fields).items() if check.verdict is Verdict.FAILS}


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"partition": "cpu"},
        {"resources": {"nodes": 4, "gpus_per_node": 8, "time": "4h"}},
        {"partition": "long", "resources": {"time": "30d"}},
        {"partition": "short,long", "resources": {"time": "1h"}},
        {"resources": {"gpus_per_node": 1, "gpu_type": "h100"}},
        {"resources": {"memory": "all", "exclusive": True}},
        {"resources": {"time": "10m"}, "grace": "5m"},
        {"resources": {"time": "10m"}, "deadline": "+1h"},
        {"resources": {"time": "10m"}, "begin": "+2h", "deadline": "tomorrow"},
        {"resources": {"time": "1h"}, "deadline": "+5m", "sbatch": {"time-min": "2"}},
        {"inputs": {"/data": "/datasets/imagenet", "/more": "lustre:///more"}},
    ],
)
def test_what_a_partition_can_take_passes(fields: dict[str, Any]) -> None:
    assert failing(**fields) == {}


@pytest.mark.parametrize(
    ("fields", "name", "evidence", "fix"),
    [
        ({"partition": "nosuch"}, "partition", "no partition nosuch", "batch, short, cpu, long, closed (closed)"),
        ({"partition": "closed"}, "partition", "closed takes no jobs", "batch"),
        ({"resources": {"nodes": 5}}, "nodes", "allows 4", "No partition"),
        ({"partition": "short", "resources": {"nodes": 3}}, "nodes", "short allows 2", "batch, long"),
        ({"resources": {"gpus_per_node": 9}}, "gpus", "batch have 8", "No partition"),
        ({"partition": "cpu", "resources": {"gpus_per_node": 1}}, "gpus", "cpu have 0", "batch, long"),
        ({"resources": {"gpus_per_node": 1, "gpu_type": "a100"}}, "gpus", "has h100", "No partition"),
        ({"resources": {"time": "5h"}}, "time", "batch allows 04:00:00", "long"),
        ({"partition": "short,batch", "resources": {"time": "5h"}}, "time", "short allows 00:05:00", "long"),
        ({"resources": {"tasks_per_node": 8, "cpus_per_task": 5}}, "cpus", "40 CPUs", "No partition"),
        ({"partition": "cpu", "resources": {"memory": "100G"}}, "memory", "cpu have 64000", "batch"),
        ({"resources": {"memory_per_cpu": "100G", "cpus_per_task": 2}}, "memory", "204800 MiB", "No partition"),
        ({"partition": "long"}, "walltime", "no end", "--time"),
        ({"resources": {"time": "5m"}, "signal": "USR1", "grace": "5m"}, "signal", "300 s before", "--grace"),
        ({"resources": {"time": "1h"}, "deadline": "+5m"}, "deadline", "00:05:00 from now", "--deadline"),
        ({"resources": {"time": "1h"}, "begin": "+2h", "deadline": "now+150minutes"}, "deadline", "7200", "--time"),
    ],
)
def test_what_no_asked_partition_can_take_is_refused(
    fields: dict[str, Any], name: str, evidence: str, fix: str
) -> None:
    found = failing(**fields)
    assert set(found) == {name}
    assert evidence in found[name].evidence
    assert fix in found[name].fix


PREEMPTED = replace(
    FACTS,
    partitions=(
        replace(FACTS.partitions[1], priority_tier=10),
        replace(FACTS.partitions[3], name="low", preempt_mode="CANCEL"),
        replace(FACTS.partitions[3], name="again", preempt_mode="GANG,REQUEUE"),
        replace(FACTS.partitions[3], name="top", preempt_mode="CANCEL", priority_tier=10),
        replace(FACTS.partitions[3], name="safe"),
    ),
)


def test_partitions_whose_jobs_are_preempted_are_told_as_such() -> None:
    fix = failing(PREEMPTED, partition="short", resources={"time": "5h"})["time"].fix
    assert "low (jobs there are cancelled when others want the nodes), again (jobs there are requeued" in fix
    assert ", top, safe." in fix
    asked = checks(PREEMPTED, partition="low,safe", resources={"time": "5h"})["partition"]
    assert asked.evidence == "low,safe; jobs in low are cancelled when others want the nodes"


def test_a_partition_that_is_not_there_is_answered_with_those_that_would_do() -> None:
    fix = failing(partition="gpu", resources={"gpus_per_node": 8, "nodes": 3})["partition"].fix
    assert "batch, short (cannot take this job), cpu (cannot take this job), long, closed (closed)" in fix


def test_all_failures_are_told_at_once() -> None:
    assert set(failing(resources={"nodes": 99, "gpus_per_node": 99, "time": "9d"})) == {"nodes", "gpus", "time"}


# --- Nodes of several kinds ---

MIXED = SiteFacts(
    "mixed",
    "23.02.1",
    (
        Partition(
            "gpu", True, True, 7200, 3600, None, 12, 8, ("a100", "h100"), 64, 512000,
            kinds=(
                NodeKind(8, 32, 256000, (("a100", 4),), ("rack1", "nvme")),
                NodeKind(4, 64, 512000, (("h100", 8),), ("rack2",)),
            ),
        ),
        Partition("thin", False, True, 7200, 3600, None, 2, 0, (), 8, 16000, max_cpus_per_node=6),
    ),
)  # fmt: skip


@pytest.mark.parametrize(
    ("fields", "name", "evidence"),
    [
        ({"nodes": 5, "gpus_per_node": 8}, "nodes", "only 4 of partition gpu"),
        ({"nodes": 5, "gpus_per_node": 1, "gpu_type": "h100"}, "nodes", "only 4 of partition gpu"),
        ({"nodes": 9, "memory": "256000M"}, None, ""),
        ({"nodes": 9, "memory": "300000M"}, "nodes", "only 4 of partition gpu"),
        ({"nodes": 5, "cpus_per_task": 40}, "nodes", "only 4"),
        ({"gpus_per_node": 5, "gpu_type": "a100"}, "gpus", "a100 per node are asked for"),
        ({"nodes": 13}, "nodes", "allows 12"),
    ],
)
def test_nodes_are_counted_that_have_what_is_needed(fields: dict[str, Any], name: str | None, evidence: str) -> None:
    found = failing(MIXED, resources=fields)
    assert set(found) == ({name} if name else set())
    assert evidence in "".join(check.evidence for check in found.values())


@pytest.mark.parametrize("constraint", ["rack1", "rack1&nvme", "[rack1*2|rack2*1]", "(rack1|rack2)&nvme"])
def test_features_that_nodes_have_pass(constraint: str) -> None:
    assert failing(MIXED, constraint=constraint) == {}


def test_a_feature_that_no_node_has_is_refused_with_those_that_there_are() -> None:
    found = failing(MIXED, constraint="rack1&nvem")
    assert set(found) == {"features"}
    assert "nvem; they have nvme, rack1, rack2" in found["features"].evidence


def test_a_partition_may_give_fewer_cpus_than_its_nodes_have() -> None:
    assert "have 6 CPUs" in failing(MIXED, partition="thin", resources={"cpus_per_task": 7})["cpus"].evidence


# --- Rights and limits ---

RESEARCH = Association("research", "", ("normal", "long", "limited"), "normal")
QOSES = (
    Qos("normal", 2 * 3600),
    Qos("long", 2 * 86400, (), ("PartitionTimeLimit",)),
    Qos("limited", None, (Limit("job", "gres/gpu", 4), Limit("user", "node", 2))),
    Qos("secret"),
)
GOVERNED = replace(
    FACTS,
    partitions=(
        *FACTS.partitions,
        Partition("vip", False, True, 3600, 3600, None, 4, 8, ("h100",), 32, 128000, accounts=("board",)),
        Partition("staff", False, True, 3600, 3600, None, 4, 8, ("h100",), 32, 128000, groups=("staff",)),
        Partition("slow", False, True, 3600, 3600, None, 4, 8, ("h100",), 32, 128000, denied_qoses=("long",)),
    ),
    enforces=("associations", "limits", "qos"),
    default_account="research",
    associations=(RESEARCH, Association("teaching", "cpu", ("normal",), "normal", 600)),
    qoses=QOSES,
    groups=("users",),
    licenses=(("matlab", 5),),
)


@pytest.mark.parametrize(
    ("fields", "name", "evidence", "fix"),
    [
        ({"account": "resaerch"}, "account", "no account of yours", "research, teaching"),
        ({"account": "teaching"}, "access", "account teaching may not be used in partition batch", "cpu"),
        ({"qos": "lnog"}, "qos", "no QOS lnog", "Did you mean long?"),
        ({"qos": "secret"}, "qos", "may not use QOS secret", "limited, long, normal"),
        (
            {"resources": {"time": "3h"}},
            "time",
            "QOS normal allows 02:00:00",
            "--qos long, partition batch would",
        ),
        ({"partition": "cpu", "account": "teaching", "resources": {"time": "11m"}}, "time", "QOS normal", ""),
        ({"qos": "long", "resources": {"time": "3d"}}, "time", "QOS long allows 2-00:00:00", ""),
        ({"qos": "limited", "resources": {"gpus_per_node": 8}}, "limits", "8 GPUs are asked for and QOS limited", ""),
        ({"qos": "limited", "resources": {"nodes": 3}}, "limits", "for all jobs of yours together allows 2", ""),
        ({"partition": "vip"}, "access", "vip takes no jobs of account research", "batch"),
        ({"partition": "staff"}, "access", "for members of staff", "batch"),
        ({"partition": "slow", "qos": "long"}, "access", "slow takes no jobs of QOS long", "batch"),
        ({"resources": {"licenses": "matlba"}}, "licenses", "no licenses matlba", "Did you mean matlab?"),
        ({"resources": {"licenses": "matlab:6"}}, "licenses", "has 5", "fewer"),
    ],
)
def test_what_accounting_would_not_allow_is_refused(fields: dict[str, Any], name: str, evidence: str, fix: str) -> None:
    if name == "time" and "account" in fields:
        fields = {**fields, "resources": {"time": "3h"}}
    found = failing(GOVERNED, **fields)
    assert set(found) == {name}
    assert evidence in found[name].evidence
    assert fix in found[name].fix


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"account": "RESEARCH", "qos": "long", "resources": {"time": "1d"}},
        {"qos": "limited", "resources": {"gpus_per_node": 4, "licenses": "matlab:2"}},
        {"partition": "vip,batch"},
        {"partition": "cpu", "account": "teaching"},
    ],
)
def test_what_accounting_allows_passes(fields: dict[str, Any]) -> None:
    assert failing(GOVERNED, **fields) == {}


def test_limits_that_accounting_does_not_enforce_do_not_count() -> None:
    assert failing(replace(GOVERNED, enforces=("associations",)), resources={"time": "3h"}) == {}


def test_what_accounting_does_not_tell_cannot_be_told() -> None:
    facts = replace(GOVERNED, associations=None, qoses=None, licenses=None, default_account="")
    found = checks(facts, qos="long", account="x", resources={"licenses": "a"})
    assert {name for name, check in found.items() if check.verdict is Verdict.CANNOT_TELL} == {
        "account", "qos", "licenses", "limits",
    }  # fmt: skip


def test_partitions_that_can_each_take_a_part_but_not_all_are_refused() -> None:
    found = failing(partition="short,cpu", resources={"gpus_per_node": 1, "time": "1h"})
    assert set(found) == {"together"}
    assert "batch, long" in found["together"].fix


def test_where_every_partition_must_be_able_to_take_a_job_one_that_cannot_is_enough() -> None:
    fields: dict[str, Any] = {"partition": "short,batch", "resources": {"time": "1h"}}
    assert failing(**fields) == {}
    assert set(failing(replace(FACTS, part_limits="ALL"), **fields)) == {"time"}


def test_the_tightest_of_several_rules_is_told() -> None:
    found = checks(partition="batch,short", resources={"time": "4m"})["time"]
    assert found.verdict is Verdict.OK
    assert "the tightest rule is 00:05:00 of partition short" in found.evidence


# --- What is filled in ---


def filled(profile: dict[str, Any] | None = None, facts: SiteFacts = FACTS, **fields: Any) -> JobSpec:
    spec = JobSpec.build(**{"command": ["true"], "image": "/i.sqsh", **fields})
    return fill_in(spec, PROFILE.model_copy(update=profile or {}), facts).spec


def test_the_walltime_is_the_jobs_the_profiles_or_the_tightest_default() -> None:
    assert filled({"time": 60}, resources={"time": 120}).resources.time == 120
    assert filled({"time": 60}).resources.time == 60
    assert filled(partition="batch,short").resources.time == 300
    assert filled(facts=replace(GOVERNED, qoses=(Qos("normal", 900),))).resources.time == 900
    assert filled(partition="long").resources.time is None


def test_the_share_of_cpus_keeps_to_the_limits() -> None:
    small = replace(GOVERNED, qoses=(Qos("normal", None, (Limit("job", "cpu", 10),)),))
    assert filled(facts=small, resources={"gpus_per_node": 8}).resources.cpus_per_task == 10
    assert failing(small, resources={"gpus_per_node": 8}) == {}
    assert set(failing(small, resources={"gpus_per_node": 8, "cpus_per_task": 11})) == {"limits"}


@pytest.mark.parametrize("per", ["user", "group"])
def test_an_array_that_can_never_be_queued_is_refused(per: Per) -> None:
    tight = replace(GOVERNED, qoses=(Qos("normal", None, (Limit(per, QUEUED, 4),)),))
    assert failing(tight, array="0-3") == {}
    assert "5 tasks are asked for and QOS normal" in failing(tight, array="0-4%1")["limits"].evidence


def test_who_says_which_cpus_count_gets_no_share_of_all() -> None:
    wanted = {"gpus_per_node": 8}
    assert filled(resources=wanted).resources.cpus_per_task == 32
    assert filled(resources=wanted, sbatch={"hint": "nomultithread"}).resources.cpus_per_task is None


def test_the_profile_gives_what_the_job_leaves_open() -> None:
    spec = filled({"restart": "never", "mail_user": "me@example.org"})
    assert (spec.restart, spec.mail and (spec.mail.user, spec.mail.types)) == ("never", ("me@example.org", ("ALL",)))
    assert filled({"restart": "never"}, restart="on-fault").restart == "on-fault"


def test_inputs_on_the_shared_file_system_are_mounted_for_reading() -> None:
    (mount,) = filled(inputs={"/data": "slurm://host/datasets/x"}).mounts
    assert (mount.source, mount.target, mount.mode) == ("/host/datasets/x", "/data", "ro")


@pytest.mark.parametrize(
    ("site", "own", "both"),
    [
        ("", "mine", "mine"),
        ("theirs", "", "theirs"),
        ("theirs", "mine", "theirs mine"),
        ('{"a":{"b":1,"c":2}}', '{"a":{"c":3},"d":4}', '{"a":{"b":1,"c":3},"d":4}'),
        ('{"a":1}', "mine", '{"a":1,"comment":"mine"}'),
        ("theirs", '{"a":1}', '{"comment":"theirs","a":1}'),
        ('{"a":', "mine", '{"a": mine'),
        ('{"a":1}', '["x"]', '{"a":1,"comment":"[\\"x\\"]"}'),
    ],
)
def test_comments_of_site_and_user_stand_together(site: str, own: str, both: str) -> None:
    assert join_comments(site, own) == both


def test_taos_packaged_partitions_run_jobs_of_four_hours() -> None:
    facts = SiteFacts("site", "23.02", (Partition("polar", True, True, None), Partition("own", False, True, 86400)))
    tao = ClusterProfile(name="tao", preset="tao", hosts=("login",), root="/lustre/me")
    assert [part.max_time for part in with_preset(facts, tao).partitions] == [4 * 3600, 86400]
    assert with_preset(facts, PROFILE) == facts
