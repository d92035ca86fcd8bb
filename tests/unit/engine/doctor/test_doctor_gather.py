"""Gathering over login hosts in memory: how many round trips, which roles, and what is left behind."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from tests.unit.engine.doctor.healthy import ANSWER, DEEP, changed, profile
from towline.config.profile import ClusterProfile
from towline.engine.doctor.facts import Facts
from towline.engine.doctor.gather import gather, look_deep
from towline.models.errors import AccessRefused
from towline.remote.base import Ending, Operation, Outcome
from towline.remote.memory import InMemory

Handler = Callable[[str, Operation], Outcome]


class Hosts:
    """Login hosts that a handler answers for; every operation is noted."""

    def __init__(self, handler: Handler) -> None:
        self.asked: list[tuple[str, str]] = []
        self.arguments: list[tuple[str, ...]] = []
        self._handler = handler

    def open(self, profile: ClusterProfile) -> InMemory:
        (host,) = profile.hosts or ("localhost",)

        def answer(operation: Operation) -> Outcome:
            role = operation.args[3] if operation.name == "doctor" else operation.name
            self.asked.append((host, role))
            self.arguments.append(operation.args)
            return self._handler(host, operation)

        return InMemory(answer)


def healthy(host: str, operation: Operation) -> Outcome:
    text = ANSWER if operation.name == "doctor" else DEEP
    if operation.args[3] == "look":
        text = changed(text, ((">probe written", ">probe seen"),))
    return Outcome(Ending.DONE, 0, text.encode(), host=host)


def local(**settings: str) -> ClusterProfile:
    """A profile that is reached without ssh, so that nothing of this machine is looked at."""
    return profile(transport="local", hosts=(), **settings)


def seen(hosts: Hosts, found: ClusterProfile) -> Facts:
    return asyncio.run(gather(found, opener=hosts.open))


def test_each_host_is_asked_once_and_the_first_once_more_to_clean_up() -> None:
    hosts = Hosts(healthy)
    found = seen(hosts, profile(hosts="a.invalid,b.invalid,c.invalid"))
    assert hosts.asked[0] == ("a.invalid", "write")
    assert sorted(hosts.asked[1:3]) == [("b.invalid", "look"), ("c.invalid", "look")]
    assert hosts.asked[3:] == [("a.invalid", "remove")]
    assert len({arguments[2] for arguments in hosts.arguments}) == 1
    assert len(found.reached) == 3


def test_the_next_host_writes_when_the_first_is_not_reached() -> None:
    def first_dead(host: str, operation: Operation) -> Outcome:
        if host == "a.invalid":
            raise AccessRefused("the host key of a.invalid has changed")
        return healthy(host, operation)

    hosts = Hosts(first_dead)
    found = seen(hosts, profile(hosts="a.invalid,b.invalid"))
    assert hosts.asked == [("a.invalid", "write"), ("b.invalid", "write"), ("b.invalid", "remove")]
    assert [login.reached for login in found.logins] == [False, True]
    assert "has changed" in found.logins[0].problem


def test_nothing_is_cleaned_up_where_nothing_was_written() -> None:
    def refused(host: str, operation: Operation) -> Outcome:
        text = changed(ANSWER, ((">probe written", "!Permission denied"),))
        return Outcome(Ending.DONE, 0, text.encode(), host=host)

    hosts = Hosts(refused)
    seen(hosts, local())
    assert hosts.asked == [("localhost", "write")]


def test_the_job_asks_for_a_gpu_in_a_way_that_sbatch_takes() -> None:
    hosts = Hosts(healthy)
    found = seen(hosts, local(gpu_request="gpus-per-node", account="research"))
    deep = asyncio.run(look_deep(found, 60, opener=hosts.open))
    directory, seconds, _, image, gpu, *options = hosts.arguments[-1]
    assert directory.startswith("/lustre/me/towline/doctor-")
    assert (seconds, image, gpu) == ("60", "nvcr.io#nvidia/pytorch:24.07-py3", "--gpus-per-node=1")
    assert options == ["--account=research"]
    assert deep.deep is not None
    assert deep.deep.fact("node", "host") == "node1"


def test_a_job_in_a_partition_without_gpus_asks_for_none() -> None:
    hosts = Hosts(healthy)
    asyncio.run(look_deep(seen(hosts, local(partition="cpu")), 60, opener=hosts.open))
    assert hosts.arguments[-1][4] == "none"
