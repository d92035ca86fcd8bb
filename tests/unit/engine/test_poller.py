"""One process asks for all jobs of all processes, at a pace that no site complains of."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.engine.records import SPEC
from tests.unit.engine.simulated import Clock, Cluster, Life, process, simulated_time, submitted
from towline.engine.events import NoAnswer, StateChanged
from towline.engine.session import Session
from towline.engine.watching import waiting
from towline.models.errors import Unreachable
from towline.models.job import JobRecord, JobState


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Iterator[Clock]:
    with simulated_time(monkeypatch) as moved:
        yield moved


@pytest.fixture
def cluster(clock: Clock) -> Cluster:
    return Cluster(clock)


def add(session: Session, cluster: Cluster, slurm: int, life: Life) -> JobRecord:
    record = submitted(slurm, cluster.clock.time())
    cluster.lives[str(slurm)] = life
    session.store.intend(record, SPEC)
    return record


async def wait(session: Session, record: JobRecord, interval: float | None = None) -> JobRecord:
    async for event in waiting.changes(session, record, interval=interval):
        if isinstance(event, StateChanged):
            record = event.record
    return record


async def during(seconds: float, *waits: asyncio.Future[JobRecord]) -> None:
    await asyncio.wait(waits, timeout=seconds)
    for each in waits:
        each.cancel()
    await asyncio.gather(*waits, return_exceptions=True)


def test_fifty_jobs_of_five_processes_take_ten_queries_in_five_minutes(cluster: Cluster, tmp_path: Path) -> None:
    sessions = [process(cluster, tmp_path) for _ in range(5)]
    lives = [Life(100, 400) if number < 10 else Life() for number in range(50)]
    records = [add(sessions[number % 5], cluster, number + 1, life) for number, life in enumerate(lives)]

    async def watched() -> None:
        await during(300, *(asyncio.ensure_future(wait(sessions[n % 5], each)) for n, each in enumerate(records)))

    cluster.clock.run(watched())
    assert 4 <= len(cluster.queries) <= 10, " ".join(map(str, cluster.queries))
    known = sessions[4].store.jobs("lab")
    assert [each.state for each in known] == [JobState.RUNNING] * 10 + [JobState.PENDING] * 40


def test_the_end_of_a_job_is_noticed_within_seconds_by_its_own_files(cluster: Cluster, tmp_path: Path) -> None:
    session = process(cluster, tmp_path)
    record = add(session, cluster, 1, Life(40, 400))
    assert cluster.clock.run(wait(session, record)).state is JobState.SUCCEEDED
    assert cluster.clock.now < 410
    assert len(cluster.polls) < 25


def test_all_processes_get_to_know_what_one_has_seen(cluster: Cluster, tmp_path: Path) -> None:
    one, other = (process(cluster, tmp_path) for _ in range(2))
    records = [add(one, cluster, 1, Life(5, 50)), add(other, cluster, 2, Life(5, 90))]

    async def both() -> tuple[JobRecord, JobRecord]:
        return await asyncio.gather(wait(one, records[0]), wait(other, records[1]))

    assert [each.state for each in cluster.clock.run(both())] == [JobState.SUCCEEDED] * 2
    assert len(cluster.polls) < 12


def test_another_process_takes_over_when_the_one_that_asked_is_gone(cluster: Cluster, tmp_path: Path) -> None:
    one, other = (process(cluster, tmp_path) for _ in range(2))
    records = [add(one, cluster, 1, Life(5)), add(other, cluster, 2, Life(5, 300))]

    async def left() -> JobRecord:
        first = asyncio.ensure_future(wait(one, records[0]))
        second = asyncio.ensure_future(wait(other, records[1]))
        await asyncio.sleep(100)
        first.cancel()
        return await second

    assert cluster.clock.run(left()).state is JobState.SUCCEEDED
    gaps = [later - earlier for earlier, later in zip(cluster.polls, cluster.polls[1:], strict=False)]
    assert max(gaps) < 60


@pytest.mark.parametrize("first", [True, False])
def test_a_shorter_interval_of_any_process_is_kept(cluster: Cluster, tmp_path: Path, first: bool) -> None:
    one, other = (process(cluster, tmp_path) for _ in range(2))
    records = [add(one, cluster, 1, Life(1)), add(other, cluster, 2, Life(1))]

    async def watched() -> None:
        slow = asyncio.ensure_future(wait(one, records[0]))
        await asyncio.sleep(0 if first else 1)
        quick = asyncio.ensure_future(wait(other, records[1], interval=5))
        await during(100, *((slow, quick) if first else (quick, slow)))

    cluster.clock.run(watched())
    assert 15 <= len(cluster.polls) <= 30


def test_long_queues_are_asked_less_often(cluster: Cluster, tmp_path: Path) -> None:
    session = process(cluster, tmp_path)
    record = add(session, cluster, 1, Life(3600, 3700))
    assert cluster.clock.run(wait(session, record)).state is JobState.SUCCEEDED
    waited = [each for each in cluster.polls if each < 3600]
    assert len(waited) < 45


def test_a_busy_controller_is_left_in_peace(cluster: Cluster, tmp_path: Path) -> None:
    cluster.squeue_says = lambda now: "error: Slurm temporarily unable to accept job" if now < 3600 else ""
    session = process(cluster, tmp_path)
    record = add(session, cluster, 1, Life(1, 3600))
    assert cluster.clock.run(wait(session, record)).state is JobState.SUCCEEDED
    assert len([each for each in cluster.polls if each < 3600]) < 20


def test_silence_is_told_once_and_waiting_goes_on(cluster: Cluster, tmp_path: Path) -> None:
    cluster.failing = lambda now: 20 < now < 2000
    session = process(cluster, tmp_path)
    record = add(session, cluster, 1, Life(10, 1000))

    async def collect() -> list[object]:
        return [event async for event in waiting.changes(session, record)]

    events = cluster.clock.run(collect())
    assert len([event for event in events if isinstance(event, NoAnswer)]) == 1
    assert isinstance(events[-1], StateChanged)
    assert events[-1].record.state is JobState.SUCCEEDED


def test_waiting_gives_up_when_its_patience_ends(cluster: Cluster, tmp_path: Path) -> None:
    cluster.failing = lambda now: now > 20
    session = process(cluster, tmp_path)
    record = add(session, cluster, 1, Life(10, 1000))

    async def collect() -> None:
        async for _ in waiting.changes(session, record, patience=600):
            pass

    with pytest.raises(Unreachable):
        cluster.clock.run(collect())
    assert 600 < cluster.clock.now < 700


def test_a_thousand_waits_in_one_process_share_their_looks(cluster: Cluster, tmp_path: Path) -> None:
    session = process(cluster, tmp_path)
    records = [add(session, cluster, number, Life(10, 50)) for number in range(1, 1001)]

    async def together() -> list[JobRecord]:
        return await asyncio.gather(*(wait(session, each) for each in records))

    assert {each.state for each in cluster.clock.run(together())} == {JobState.SUCCEEDED}
    assert len(cluster.polls) < 12
    assert cluster.clock.now < 90
