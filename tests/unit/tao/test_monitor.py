"""Hooks: once for what became of the job, whoever saw it first."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from towline.models.errors import Unreachable
from towline.tao.job_store import JobStore
from towline.tao.models import Job
from towline.tao.monitor import Hooks, JobMonitor


class Handler:
    """Jobs whose states a test says."""

    def __init__(self, status: str = "Running") -> None:
        self.status = status
        self.logs = ""

    def get_tao_job_status(self, job_id: str) -> str | None:
        if self.status == "away":
            raise Unreachable("no answer")
        return self.status

    def normalize_status(self, raw_status: str | None) -> str:
        return raw_status or "Unknown"

    def get_job_logs(self, job_id: str, tail_lines: int | None = None) -> str:
        return self.logs


class Known(Handler):
    """One that learns of changes by itself."""

    keeps_up = True


def job(name: str = "one") -> Job:
    return Job(id=name, network_arch="", action="", workspace_id="slurm")


def hooks(called: list[object]) -> Hooks:
    def complete(job: Job) -> None:
        called.append(("complete", job.id))

    def error(job: Job) -> None:
        called.append(("error", job.id))

    def milestone(_job: Job, epoch: int, epochs: int) -> None:
        called.append((epoch, epochs))

    return {"on_complete": complete, "on_error": error, "on_epoch_milestone": milestone}


@pytest.fixture
def store(tmp_path: Path) -> JobStore:
    return JobStore(tmp_path / "jobs.db")


def test_an_end_that_was_seen_before_the_first_look_is_told(store: JobStore) -> None:
    called: list[object] = []
    monitor = JobMonitor(store=store)
    monitor.watch(job(), hooks(called), Known("Complete"))
    store.update_job_status("one", "Complete")
    monitor.stop()
    assert called == [("complete", "one")], "stopping tells what is known"


@pytest.mark.parametrize(("word", "told"), [("Complete", "complete"), ("Error", "error"), ("Canceled", "")])
def test_ends_are_told_once(store: JobStore, word: str, told: str) -> None:
    called: list[object] = []
    for _ in range(2):  # two processes, one after the other
        monitor = JobMonitor(store=store)
        monitor.watch(job(), hooks(called), Handler(word))
        monitor.check()
        monitor.check()
        monitor.stop()
    assert called == ([(told, "one")] if told else [])


def test_every_milestone_is_told_and_none_again_by_a_later_process(store: JobStore) -> None:
    called: list[object] = []
    handler = Handler()
    monitor = JobMonitor(epoch_milestone_interval=10, store=store)
    monitor.watch(job(), hooks(called), handler)
    for handler.logs in ("", "Epoch 3/50", "Epoch 24/50\nloss 1", "epoch: 24"):
        monitor.check()
    assert called == [(10, 50), (20, 50)]
    again = JobMonitor(epoch_milestone_interval=10, store=store)
    again.watch(job(), hooks(called), handler)
    handler.status, handler.logs = "Complete", "Epoch 41/50"
    again.check()
    assert called[2:] == [(30, 50), (40, 50), ("complete", "one")]


def test_a_question_without_an_answer_changes_nothing(store: JobStore) -> None:
    called: list[object] = []
    handler = Handler("away")
    monitor = JobMonitor(store=store)
    monitor.watch(job(), hooks(called), handler)
    monitor.check()
    assert (store.get_job("one") or {})["status"] == "Pending"
    handler.status = "Error"
    monitor.check()
    assert called == [("error", "one")]


def test_a_hook_that_fails_does_not_stop_the_others(store: JobStore, caplog: pytest.LogCaptureFixture) -> None:
    called: list[object] = []

    def fail(_job: Job) -> None:
        raise RuntimeError("a bug in a hook")

    monitor = JobMonitor(store=store)
    monitor.watch(job("one"), {"on_complete": fail}, Handler("Complete"))
    monitor.watch(job("two"), hooks(called), Handler("Complete"))
    monitor.check()
    assert called == [("complete", "two")]
    assert "a bug in a hook" in caplog.text


def test_the_thread_looks_when_it_is_woken_and_ends(store: JobStore, tmp_path: Path) -> None:
    over = threading.Event()
    handler = Known()
    monitor = JobMonitor(poll_interval=3600, store=store, state_file=tmp_path / "state.json")

    def complete(_job: Job) -> None:
        over.set()

    monitor.watch(job(), {"on_complete": complete}, handler)
    monitor.start()
    monitor.start()
    assert '"job_id": "one"' in (tmp_path / "state.json").read_text()
    handler.status = "Complete"
    monitor.wake()
    assert over.wait(30)
    monitor.stop()
    assert "one" not in (tmp_path / "state.json").read_text()
    assert not [thread for thread in threading.enumerate() if thread.name == "towline-tao"]
