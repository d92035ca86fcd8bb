"""Notices on their way: none lost and none told twice, whatever dies."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.unit.engine.records import record as made
from towline.engine.notifying import outbox
from towline.engine.notifying.outbox import Channel
from towline.engine.notifying.sending import Sender
from towline.engine.store import Store
from towline.models.job import JobRecord, JobState
from towline.models.notice import Occasion, Tone
from towline.models.spec import JobSpec

SPEC = JobSpec.build(command=["true"])


def channel(*occasions: Occasion, url: str = "json://here") -> Channel:
    return Channel("lab", url, frozenset(occasions or ("ended", "stuck", "restarted")))


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = Store(tmp_path)
    yield opened
    opened.close()


class Post:
    """Takes messages, or not."""

    def __init__(self) -> None:
        self.sent: list[tuple[str, str, str]] = []
        self.error = ""

    def __call__(self, url: str, title: str, body: str, tone: Tone) -> str:
        if not self.error:
            self.sent.append((url, title, body))
        return self.error


def job(store: Store, name: str, *states: JobState, adopted: bool = False) -> JobRecord:
    record = made(name, name=name)
    store.intend(record, SPEC, adopted=adopted)
    for state in states:
        (record,) = store.save(dataclasses.replace(record, state=state))
    return record


def titles(post: Post) -> list[str]:
    return [title for _, title, _ in post.sent]


def test_each_end_is_told_once_to_each_channel_that_wants_it(store: Store) -> None:
    everything, failures = channel(), channel("failed", url="json://failures")
    job(store, "before", JobState.FAILED)
    outbox.open_channels(store, [everything, failures])
    job(store, "good", JobState.RUNNING, JobState.SUCCEEDED)
    job(store, "bad", JobState.RUNNING, JobState.FAILED)
    job(store, "refused", JobState.REFUSED)
    post = Post()
    for _ in range(3):
        Sender(store, [everything, failures], post).once()
    outbox.open_channels(store, [everything, failures])
    assert post.sent[0][:2] == ("json://here", "2 notices from Towline")
    assert "good succeeded (lab)" in post.sent[0][2]
    assert post.sent[1][:2] == ("json://failures", "bad failed (lab)")
    assert len(post.sent) == 2
    assert not outbox.has_work(store, [everything, failures])


def test_what_had_become_of_adopted_jobs_before_is_not_told(store: Store) -> None:
    here = channel("ended", "started", "restarted", "stuck")
    outbox.open_channels(store, [here])
    job(store, "old", JobState.SUCCEEDED, adopted=True)
    running = job(store, "running", JobState.RUNNING, adopted=True)
    post = Post()
    Sender(store, [here], post).once()
    assert post.sent == []
    store.save(dataclasses.replace(running, state=JobState.FAILED))
    Sender(store, [here], post).once()
    assert titles(post) == ["running failed (lab)"]


def test_what_cannot_be_sent_waits_and_is_sent_later(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    here = channel()
    outbox.open_channels(store, [here])
    job(store, "first", JobState.SUCCEEDED)
    post = Post()
    post.error = "503"
    Sender(store, [here], post).once()
    assert not outbox.has_work(store, [here])
    job(store, "second", JobState.SUCCEEDED)
    post.error = ""
    Sender(store, [here], post).once()
    assert post.sent == [], "the first is told first"
    later = outbox.next_due(store, [here])
    monkeypatch.setattr("towline.engine.notifying.outbox.time.time", lambda: later)
    Sender(store, [here], post).once()
    assert [title for _, title, _ in post.sent] == ["2 notices from Towline"]


def test_a_message_whose_sender_died_is_sent_again_alone_and_says_so(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = channel()
    outbox.open_channels(store, [here])
    job(store, "first", JobState.SUCCEEDED)
    outbox.collect(store, here)
    assert len(outbox.claim(store, here)) == 1  # and then it dies
    job(store, "second", JobState.SUCCEEDED)
    post = Post()
    Sender(store, [here], post).once()
    assert post.sent == []
    later = outbox.next_due(store, [here]) + 1
    monkeypatch.setattr("towline.engine.notifying.outbox.time.time", lambda: later)
    Sender(store, [here], post).once()
    assert titles(post) == ["first succeeded (lab)", "second succeeded (lab)"]
    assert [outbox.AGAIN in body for _, _, body in post.sent] == [True, False]


def test_of_many_processes_one_sends_each(tmp_path: Path, store: Store) -> None:
    here = channel()
    outbox.open_channels(store, [here])
    post = Post()

    def process(_: int) -> None:
        own = Store(tmp_path)
        for _ in range(5):
            Sender(own, [here], post).once()
        own.close()

    for number in range(4):
        job(store, f"job{number}", JobState.SUCCEEDED)
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(process, range(4)))
    assert sorted(titles(post)) == [f"job{number} succeeded (lab)" for number in range(4)]


def test_a_job_that_is_removed_meanwhile_is_told_all_the_same(store: Store) -> None:
    here = channel()
    outbox.open_channels(store, [here])
    record = job(store, "gone", JobState.FAILED)
    store.remove([record.id])
    post = Post()
    Sender(store, [here], post).once()
    assert titles(post) == ["gone failed (lab)"]


def test_no_url_is_in_the_store(tmp_path: Path, store: Store) -> None:
    here = channel(url="slack://secret-token/x")
    outbox.open_channels(store, [here])
    job(store, "one", JobState.SUCCEEDED)
    post = Post()
    post.error = "503"
    Sender(store, [here], post).once()
    assert not [path for path in tmp_path.iterdir() if b"secret-token" in path.read_bytes()]
