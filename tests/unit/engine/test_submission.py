"""Whatever becomes of the call that submits, the store says what is known of the job."""

from __future__ import annotations

import asyncio
import dataclasses
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from towline.config.profile import ClusterProfile
from towline.engine.cluster import AsyncCluster
from towline.engine.events import Held
from towline.engine.session import CALL_SECONDS
from towline.engine.store import Store
from towline.engine.submitting import submission
from towline.models.errors import (
    AccessRefused,
    ConfigError,
    OutcomeUnknown,
    PlanRefused,
    SlurmRefused,
    SlurmUnavailable,
    StagingFailed,
    TowlineError,
    Unreachable,
)
from towline.models.job import JobState
from towline.models.site import Partition, SiteFacts
from towline.models.spec import JobSpec
from towline.remote.base import Ending, Operation, Outcome
from towline.remote.memory import InMemory

PROFILE = ClusterProfile(name="lab", hosts=("login",), root="/lustre/me", image="/i.sqsh")
SPEC = JobSpec.build(command=["true"])
DONE = Ending.DONE


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = Store(tmp_path)
    partition = Partition("batch", True, True, 3600, None, None, 4, 8, ("h100",), 32, 1000)
    opened.save_facts("lab", SiteFacts("lab", "22.05.8", (partition,), 10, time.time()))
    yield opened
    opened.close()


def cluster(store: Store, answer: Callable[[Operation], Outcome]) -> AsyncCluster:
    return AsyncCluster(PROFILE, remote=InMemory(answer), store=store)


def submit(store: Store, answer: Callable[[Operation], Outcome]) -> None:
    asyncio.run(cluster(store, answer).submit(SPEC, patience=0))


def test_an_accepted_job_is_pending_with_slurms_id(store: Store) -> None:
    submit(store, lambda _: Outcome(DONE, 0, b"came=submitted\nslurm=41;gpu\n"))
    (job,) = store.jobs("lab")
    assert (job.state, job.last.slurm_id, job.last.slurm_cluster) == (JobState.PENDING, "41", "gpu")


@pytest.mark.parametrize(
    ("outcome", "error", "state"),
    [
        (Outcome(Ending.NOT_STARTED, detail="login: no route"), Unreachable, JobState.REFUSED),
        (Outcome(Ending.UNKNOWN, detail="cut"), OutcomeUnknown, JobState.SUBMITTING),
        (Outcome(Ending.TIMED_OUT, detail="slow"), OutcomeUnknown, JobState.SUBMITTING),
        (Outcome(DONE, 47, b"", b"another submission"), OutcomeUnknown, JobState.SUBMITTING),
        (Outcome(DONE, 49, b"", b"sbatch did not say"), OutcomeUnknown, JobState.SUBMITTING),
        (Outcome(DONE, 1, b"", b"sh: out of memory"), OutcomeUnknown, JobState.SUBMITTING),
        (Outcome(DONE, 0, b"", b""), OutcomeUnknown, JobState.SUBMITTING),
        (Outcome(DONE, 43, b"missing /data\n"), PlanRefused, JobState.REFUSED),
        (Outcome(DONE, 43, b"no-image /i.sqsh\n"), PlanRefused, JobState.REFUSED),
        (Outcome(DONE, 43, b"no-python /i.sqsh\n"), PlanRefused, JobState.REFUSED),
        (Outcome(DONE, 39, b"", b"the setup line ended with exit code 1"), ConfigError, JobState.REFUSED),
        (Outcome(DONE, 44, b"", b"No space left on device"), StagingFailed, JobState.REFUSED),
        (Outcome(DONE, 42, b"", b"jobs belongs to user 0"), AccessRefused, JobState.REFUSED),
        (
            Outcome(DONE, 48, b"", b"sbatch: error: Batch job submission failed: Invalid qos specification"),
            SlurmRefused,
            JobState.REFUSED,
        ),
        (
            Outcome(DONE, 48, b"", b"sbatch: error: Batch job submission failed: Job violates accounting/QOS policy"
                    b" (job submit limit, user's size and/or time limits)"),
            SlurmRefused,
            JobState.REFUSED,
        ),
        (
            Outcome(DONE, 48, b"", b"sbatch: error: Unable to contact slurm controller (connect failure)"),
            SlurmUnavailable,
            JobState.REFUSED,
        ),
    ],
)  # fmt: skip
def test_every_other_ending_is_told_and_kept(
    store: Store, outcome: Outcome, error: type[TowlineError], state: JobState
) -> None:
    with pytest.raises(error):
        submit(store, lambda _: outcome)
    (job,) = store.jobs("lab", everything=True)
    assert job.state is state


def test_the_intent_is_kept_before_the_first_byte_is_sent(store: Store) -> None:
    def look(operation: Operation) -> Outcome:
        (job,) = store.jobs("lab")
        assert job.state is JobState.SUBMITTING
        assert operation.survives
        assert operation.files["files/script/batch"]
        return Outcome(DONE, 0, b"came=submitted\nslurm=41\n")

    submit(store, look)


def test_a_check_that_fails_sends_nothing(store: Store) -> None:
    def never(operation: Operation) -> Outcome:
        assert operation.name == "facts"
        return Outcome(DONE, 40, b"", b"")

    wide = JobSpec.build(command=["true"], resources={"nodes": 9})
    with pytest.raises(TowlineError):
        asyncio.run(cluster(store, never).submit(wide))
    assert store.jobs("lab", everything=True) == ()


POLL_NOTHING = b"@job %s 1 - no no 0 no no\n@end\n"


def lost_submission(store: Store, age: float) -> str:
    """A submission whose answer was lost `age` seconds ago."""
    with pytest.raises(OutcomeUnknown):
        submit(store, lambda _: Outcome(Ending.UNKNOWN))
    (job,) = store.jobs("lab")
    with store.writing() as db:
        db.execute("UPDATE jobs SET created = ?, changed = changed + 1", (time.time() - age,))
    return job.id


def look_again(store: Store, found: Outcome) -> list[str]:
    """Poll while the look-up answers `found`; returns the operations that were sent."""
    sent: list[str] = []

    def answer(operation: Operation) -> Outcome:
        sent.append(operation.name)
        (job,) = store.jobs("lab")
        if operation.name == "poll":
            return Outcome(DONE, 0, POLL_NOTHING % job.id.encode())
        if operation.name == "cancel":
            return Outcome(DONE, 0, b"@mark done\n@end\n")
        return found

    asyncio.run(cluster(store, answer).jobs())
    return sent


def test_what_another_process_does_during_a_poll_is_not_undone(store: Store) -> None:
    """Nothing is learnt of a job that waits as before, so that only the store can tell."""
    submit(store, lambda _: Outcome(DONE, 0, b"came=submitted\nslurm=41\n"))
    with store.writing() as db:
        db.execute("UPDATE jobs SET created = 1, changed = changed + 1")
    row = b"@query 0 squeue - 41\n>41|PENDING|1|N/A|N/A|1||Priority\n"
    cancelling = False

    def answer(operation: Operation) -> Outcome:
        assert operation.name == "poll"
        if cancelling:
            other = Store(store.directory)
            other.save(*(dataclasses.replace(job, state=JobState.CANCELLED) for job in other.jobs("lab")))
            other.close()
        return Outcome(DONE, 0, row + b"@end\n")

    async def polls() -> list[JobState]:
        nonlocal cancelling
        looking = cluster(store, answer)
        states = [job.state for _ in range(2) for job in await looking.jobs()]
        cancelling = True
        return [*states, *(job.state for job in await looking.jobs())]

    assert asyncio.run(polls()) == [JobState.PENDING, JobState.PENDING, JobState.CANCELLED]


OLD = CALL_SECONDS + 60


def test_a_lost_submission_that_slurm_has_is_taken_over(store: Store) -> None:
    job_id = lost_submission(store, 1)
    look_again(store, Outcome(DONE, 0, b"came=queue\nslurm=77\n"))
    job = store.job(job_id)
    assert job is not None
    assert (job.state, job.last.slurm_id) == (JobState.PENDING, "77")


@pytest.mark.parametrize(
    ("age", "found"),
    [
        (1, Outcome(DONE, 44)),
        (1, Outcome(DONE, 50)),
        (OLD, Outcome(DONE, 47)),
        (OLD, Outcome(DONE, 49)),
        (OLD, Outcome(Ending.NOT_STARTED)),
        (OLD, Outcome(Ending.UNKNOWN)),
    ],
)
def test_a_lost_submission_stays_open_while_it_may_still_arrive(store: Store, age: float, found: Outcome) -> None:
    job_id = lost_submission(store, age)
    assert "cancel" not in look_again(store, found)
    job = store.job(job_id)
    assert job is not None
    assert job.state is JobState.SUBMITTING


@pytest.mark.parametrize(("age", "found"), [(1, Outcome(DONE, 51)), (OLD, Outcome(DONE, 44))])
def test_a_lost_submission_that_never_arrived_is_withdrawn(store: Store, age: float, found: Outcome) -> None:
    job_id = lost_submission(store, age)
    assert look_again(store, found) == ["poll", "find"]
    job = store.job(job_id)
    assert job is not None
    assert job.state is JobState.REFUSED


def test_only_what_nobody_is_at_any_more_is_withdrawn(store: Store) -> None:
    """Another process that polls while a submission is on its way leaves it alone."""
    asked: list[str] = []

    async def at_once(operation: Operation) -> Outcome:
        if operation.name == "submit":
            await cluster(store, answer).jobs()
            return Outcome(Ending.UNKNOWN)
        return answer(operation)

    def answer(operation: Operation) -> Outcome:
        if operation.name == "find":
            asked.append(operation.args[-1])
            return Outcome(DONE, 50)
        (job,) = store.jobs("lab")
        return Outcome(DONE, 0, POLL_NOTHING % job.id.encode())

    with pytest.raises(OutcomeUnknown):
        asyncio.run(AsyncCluster(PROFILE, remote=InMemory(at_once), store=store).submit(SPEC, patience=0))
    asyncio.run(cluster(store, answer).jobs())
    assert asked == ["no", "yes", "yes"]


QUEUE_FULL = Outcome(DONE, 48, b"", b"sbatch: error: QOSMaxSubmitJobPerUserLimit")
ACCEPTED = Outcome(DONE, 0, b"came=submitted\nslurm=41\n")
AWAY = Outcome(Ending.NOT_STARTED, detail="login: no route")
NOT_MINE = Outcome(DONE, 47, b"", b"another submission of this attempt is going on")


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(submission, "_FIRST_PAUSE", 0.001)


def held(store: Store, *outcomes: Outcome, patience: float | None = None) -> list[str]:
    """Submit while the cluster answers with one outcome after another; returns what was told meanwhile."""
    answers = iter(outcomes)
    reasons: list[str] = []

    def told(hold: Held) -> None:
        (job,) = store.jobs("lab")
        assert (job.state, job.note) == (JobState.SUBMITTING, f"held: {hold.reason}")
        reasons.append(hold.reason)

    asyncio.run(cluster(store, lambda _: next(answers)).submit(SPEC, patience=patience, told=told))
    return reasons


@pytest.mark.usefixtures("hasty")
@pytest.mark.parametrize(
    "outcomes",
    [
        (QUEUE_FULL, QUEUE_FULL),
        (Outcome(Ending.UNKNOWN, detail="cut"), NOT_MINE),
        (Outcome(Ending.TIMED_OUT), AWAY),
        (Outcome(DONE, 49, b"", b"sbatch: error: Socket timed out on send/recv operation"), NOT_MINE),
    ],
)
def test_what_may_still_go_well_is_sent_again(store: Store, outcomes: tuple[Outcome, ...]) -> None:
    assert len(held(store, *outcomes, ACCEPTED)) == 2
    (job,) = store.jobs("lab")
    assert (job.state, job.last.slurm_id, job.note) == (JobState.PENDING, "41", "")


@pytest.mark.usefixtures("hasty")
@pytest.mark.parametrize(
    ("outcomes", "error", "state"),
    [
        ((QUEUE_FULL, AWAY, Outcome(DONE, 48, b"", b"Invalid qos")), SlurmRefused, JobState.REFUSED),
        ((Outcome(Ending.UNKNOWN), Outcome(DONE, 48, b"", b"Invalid qos")), SlurmRefused, JobState.REFUSED),
        ((Outcome(Ending.UNKNOWN), Outcome(DONE, 44), Outcome(DONE, 47)), OutcomeUnknown, JobState.SUBMITTING),
        ((Outcome(Ending.UNKNOWN), Outcome(DONE, 44), Outcome(DONE, 51)), StagingFailed, JobState.REFUSED),
    ],
)  # fmt: skip
def test_the_last_word_counts_and_covers_every_call(
    store: Store, outcomes: tuple[Outcome, ...], error: type[TowlineError], state: JobState
) -> None:
    with pytest.raises(error):
        held(store, *outcomes)
    (job,) = store.jobs("lab", everything=True)
    assert job.state is state


@pytest.mark.parametrize(
    ("first", "state"), [(QUEUE_FULL, JobState.REFUSED), (Outcome(Ending.UNKNOWN), JobState.SUBMITTING)]
)
def test_who_breaks_off_while_it_is_held_leaves_none_or_one_to_look_up(
    store: Store, first: Outcome, state: JobState
) -> None:
    async def broken_off() -> None:
        waiting = asyncio.Event()
        work = cluster(store, lambda _: first).submit(SPEC, patience=None, told=lambda _: waiting.set())
        task = asyncio.create_task(work)
        await waiting.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(broken_off())
    (job,) = store.jobs("lab", everything=True)
    assert job.state is state


def test_patience_that_is_over_passes_slurms_words_on(store: Store) -> None:
    with pytest.raises(SlurmUnavailable, match="QOSMaxSubmitJobPerUserLimit"):
        held(store, QUEUE_FULL, patience=0)
