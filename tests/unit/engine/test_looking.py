"""What a plan learns from the cluster before anything is sent there."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from towline.config.profile import ClusterProfile
from towline.engine.cluster import AsyncCluster
from towline.engine.store import Store
from towline.engine.submitting.submission import required_paths
from towline.launch.conventions import NEEDS_PYTHON
from towline.models.errors import PlanRefused, RemoteFault, SlurmRefused, SlurmUnavailable
from towline.models.plan import Plan, Verdict
from towline.models.site import Partition, SiteFacts
from towline.models.spec import JobSpec
from towline.remote.base import Ending, Operation, Outcome
from towline.remote.memory import InMemory

PROFILE = ClusterProfile(name="lab", hosts=("login",), root="/lustre/me", image="/i.sqsh", unseen=("/raid",))
STARTS = "sbatch: Job 34 to start at 1060 using 2 processors on nodes n1 in partition batch"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = Store(tmp_path)
    partition = Partition("batch", True, True, 3600, None, None, 4, 8, ("h100",), 32, 1000)
    opened.save_facts("lab", SiteFacts("lab", "22.05.8", (partition,), 10, time.time()))
    yield opened
    opened.close()


DISK = "disk 2048 99 999 a b /lustre"


def seen(required: str = "", space: str = DISK, test: str = STARTS, code: int = 0, writable: str = "yes") -> Outcome:
    shown = "".join(f"!{line}\n" for line in test.splitlines())
    place = f"@fact place\n>room {writable} 1 1 ext /lustre\n>now 1000\n"
    text = f"@fact required\n{required}{place}@query {code} test - -\n{shown}"
    limits = "".join(f">{line}\n" for line in space.splitlines())
    free = f"@query 0 space - -\n{limits}@query 0 free - -\n>batch|4|idle|32|1000|gpu:h100:8\n@end\n"
    return Outcome(Ending.DONE, 0, (text + free).encode())


def cluster(store: Store, answer: Callable[[Operation], Outcome]) -> AsyncCluster:
    return AsyncCluster(PROFILE, remote=InMemory(answer), store=store)


def planned(store: Store, outcome: Outcome, **fields: Any) -> Plan:
    spec = JobSpec.build(**{"command": ["true"], **fields})
    return asyncio.run(cluster(store, lambda _: outcome).plan(spec, look=True))


def verdicts(plan: Plan) -> dict[str, Verdict]:
    return {check.name: check.verdict for check in plan.checks}


@pytest.mark.parametrize(
    ("required", "image", "paths"),
    [
        ("", Verdict.OK, Verdict.OK),
        (">missing /i.sqsh\n", Verdict.FAILS, Verdict.OK),
        (">missing /data\n>no-image /i.sqsh\n", Verdict.FAILS, Verdict.FAILS),
        (">no-python /i.sqsh\n", Verdict.FAILS, Verdict.OK),
        (">no-ngc /i.sqsh\n", Verdict.FAILS, Verdict.OK),
    ],
)
def test_a_look_gives_every_path_its_verdict(store: Store, required: str, image: Verdict, paths: Verdict) -> None:
    found = verdicts(planned(store, seen(required), mounts=["/data"]))
    assert (found["image"], found["paths"]) == (image, paths)


@pytest.mark.parametrize(
    ("fields", "looked_for"),
    [
        ({}, True),
        ({"mounts": ["/data"]}, True),
        ({"mounts": ["/data:/opt/conda"]}, False),
        ({"mounts": ["/opt/conda"]}, False),
        ({"env": {"PATH": "/data/bin:/bin"}}, False),
        ({"shell": f"export PATH=/data/bin:$PATH\n{NEEDS_PYTHON}"}, False),
        ({"shell": "python train.py"}, False),
    ],
)
def test_a_python_is_looked_for_where_only_the_image_can_have_it(
    store: Store, fields: dict[str, Any], looked_for: bool
) -> None:
    plan = planned(store, seen(), **{"command": (), "shell": f"{NEEDS_PYTHON}true", **fields})
    assert {each.path for each in required_paths(plan) if each.python} == ({"/i.sqsh"} if looked_for else set())


def test_without_a_look_paths_are_checked_by_the_submission(store: Store) -> None:
    spec = JobSpec.build(command=["true"], mounts=["/data"])
    found = verdicts(asyncio.run(cluster(store, lambda _: seen()).plan(spec)))
    assert (found["image"], found["paths"]) == (Verdict.ON_SUBMIT, Verdict.ON_SUBMIT)


def test_paths_that_login_hosts_cannot_see_cannot_be_told(store: Store) -> None:
    plan = planned(store, seen(), mounts=["/raid/cache", "/raids"])
    assert verdicts(plan)["unseen"] is Verdict.CANNOT_TELL
    assert plan.required_paths == ("/i.sqsh", "/raids")


@pytest.mark.parametrize(
    ("test", "code", "verdict"),
    [
        (STARTS, 0, Verdict.OK),
        ("", 0, Verdict.CANNOT_TELL),
        ("allocation failure: Invalid node name specified", 1, Verdict.FAILS),
        ("allocation failure: Required node not available (down, drained or reserved)", 1, Verdict.CANNOT_TELL),
        ("sbatch: error: Unable to contact slurm controller (connect failure)", 1, Verdict.CANNOT_TELL),
    ],
)
def test_slurms_own_verdict(store: Store, test: str, code: int, verdict: Verdict) -> None:
    assert verdicts(planned(store, seen(test=test, code=code)))["slurm"] is verdict


@pytest.mark.parametrize(
    ("space", "writable", "verdict"),
    [
        (DISK, "yes", Verdict.OK),
        ("disk 3 99 999 a b /lustre", "yes", Verdict.FAILS),
        ("disk 2048 0 999 a b /lustre", "yes", Verdict.FAILS),
        (f"{DISK}\nlfs user me /lustre 100 0 101 - 2 0 0 -", "yes", Verdict.FAILS),
        (DISK, "no", Verdict.FAILS),
        ("disk - - - - - /lustre", "yes", Verdict.CANNOT_TELL),
        ("", "yes", Verdict.CANNOT_TELL),
    ],
)
def test_the_space_for_the_jobs_files(store: Store, space: str, writable: str, verdict: Verdict) -> None:
    assert verdicts(planned(store, seen(space=space, writable=writable)))["space"] is verdict


def test_the_estimate_has_what_slurm_and_the_nodes_say(store: Store) -> None:
    plan = planned(store, seen(), resources={"gpus": 16, "time": "30m"})
    assert plan.estimate
    assert (plan.estimate.start_in, plan.estimate.nodes, plan.estimate.idle) == (60, "n1", 4)
    assert plan.gpu_hours == 8
    assert planned(store, seen(), array="0-9", resources={"gpus": 16, "time": "30m"}).gpu_hours == 80
    assert plan.notes[0] == "16 GPUs are 2 whole nodes of 8"


def test_an_answer_that_broke_off_leaves_the_plan_as_it_was(store: Store) -> None:
    plan = planned(store, Outcome(Ending.DONE, 0, b"@fact required\n"))
    assert (verdicts(plan)["image"], plan.estimate) == (Verdict.ON_SUBMIT, None)


def test_a_login_host_without_slurm_is_an_error(store: Store) -> None:
    with pytest.raises(RemoteFault):
        planned(store, Outcome(Ending.DONE, 40, b"", b"sbatch was not found"))


def test_a_submission_that_fails_a_check_tells_of_its_paths_too(store: Store) -> None:
    spec = JobSpec.build(command=["true"], mounts=["/data"], resources={"nodes": 9})
    facts = store.facts("lab")
    assert facts

    def answer(operation: Operation) -> Outcome:
        assert operation.name in ("facts", "look")
        return seen(">missing /data\n") if operation.name == "look" else Outcome(Ending.DONE, 0, b"")

    here = cluster(store, answer)
    plan = asyncio.run(_plan(here, spec, facts))
    with pytest.raises(PlanRefused) as caught:
        asyncio.run(here.submit(spec, plan))
    assert "nodes: " in caught.value.why
    assert "paths: /data does not exist" in caught.value.why


async def _plan(here: AsyncCluster, spec: JobSpec, facts: SiteFacts) -> Plan:
    from towline.engine.planning.plans import make_plan

    return make_plan(spec, here.profile, facts, "k3v9x2m4q")


def test_facts_are_asked_for_again_after_slurm_has_refused(store: Store) -> None:
    refused = Outcome(Ending.DONE, 48, b"", b"sbatch: error: Batch job submission failed: Invalid qos specification\n")
    with pytest.raises(SlurmRefused):
        asyncio.run(cluster(store, lambda _: refused).submit(JobSpec.build(command=["true"])))
    assert store.facts("lab") is None


@pytest.mark.parametrize(
    ("age", "partial", "asked"), [(30, False, 0), (3000, False, 0), (4000, False, 1), (30, True, 0), (90, True, 1)]
)
def test_facts_are_asked_for_when_they_are_old(store: Store, age: float, partial: bool, asked: int) -> None:
    facts = store.facts("lab")
    assert facts
    enforced = ("associations",) if partial else ()
    store.save_facts("lab", replace(facts, asked=time.time() - age, enforces=enforced))
    remote = InMemory(lambda _: Outcome(Ending.DONE, 0, b"@end\n"))
    with contextlib.suppress(SlurmUnavailable):
        asyncio.run(AsyncCluster(PROFILE, remote=remote, store=store).plan(JobSpec.build(command=["true"])))
    assert [operation.name for operation in remote.operations] == ["facts"] * asked
