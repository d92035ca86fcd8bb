"""The store keeps what was intended, over processes and over time."""

from __future__ import annotations

import dataclasses
import errno
import os
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from tests.unit.engine.records import SPEC, record
from towline.engine.store import Store
from towline.models.diagnosis import Diagnosis
from towline.models.errors import ConfigError
from towline.models.job import Attempt, JobState
from towline.models.site import Partition, SiteFacts

FOUND = Diagnosis("user")


@pytest.fixture
def store(tmp_path: Path):
    opened = Store(tmp_path / "state")
    yield opened
    opened.close()


def test_a_job_comes_back_as_it_was_intended(store: Store) -> None:
    store.intend(record(), SPEC)
    assert store.job("a00000001") == record()
    assert store.spec("a00000001") == SPEC


def test_an_id_is_intended_only_once(store: Store) -> None:
    store.intend(record(), SPEC)
    with pytest.raises(sqlite3.IntegrityError):
        store.intend(record(name="other"), SPEC)
    assert store.job("a00000001") == record()


def test_a_file_that_cannot_be_written_is_enough_to_look(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    store.intend(record(), SPEC)
    opened = os.open

    def read_only(path: str | Path, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        if flags & os.O_RDWR and Path(path) == store.path:
            raise OSError(errno.EROFS, "Read-only file system")
        return opened(path, flags, mode, dir_fd=dir_fd)

    monkeypatch.setattr(os, "open", read_only)
    looking = Store(store.directory)
    assert "Read-only" in looking.notes[0]
    looking.save(record(state=JobState.RUNNING))
    running = looking.job("a00000001")
    assert running is not None
    assert running.state is JobState.RUNNING
    with pytest.raises(ConfigError, match="cannot be written"):
        looking.intend(record("a00000002"), SPEC)
    looking.close()
    assert store.job("a00000001") == record()


def test_what_is_learned_is_kept_for_the_next_process(store: Store, tmp_path: Path) -> None:
    store.intend(record(), SPEC)
    attempt = Attempt(1, "77", "", "COMPLETED", "", "node[1-2]", 10, 11, 12, 7, "job", 2)
    store.save(record(state=JobState.FAILED, attempts=(attempt,), note="why"))
    other = Store(tmp_path / "state")
    assert other.job("a00000001") == record(state=JobState.FAILED, attempts=(attempt,), note="why")
    other.close()


@pytest.mark.parametrize("ended", [JobState.SUCCEEDED, JobState.FAILED, JobState.CANCELLED, JobState.REFUSED])
def test_a_job_that_ended_never_gets_another_state(store: Store, ended: JobState) -> None:
    store.intend(record(), SPEC)
    store.save(record(state=ended))
    store.save(record(state=JobState.RUNNING, attempts=(Attempt(slurm_id="9"),)))
    found = store.job("a00000001")
    assert found is not None
    assert (found.state, found.last.slurm_id) == (ended, "")


def test_what_another_process_writes_is_read_though_it_was_read_before(store: Store) -> None:
    store.intend(record(state=JobState.PENDING), SPEC)
    assert store.job("a00000001") is store.job("a00000001")  # not read from the file again
    other = Store(store.directory)
    other.save(record(state=JobState.RUNNING))
    assert [job.state for job in store.jobs("lab")] == [JobState.RUNNING]
    other.keep_diagnosis(record(note="why"), 1, FOUND)
    (job,) = store.jobs("lab")
    assert (job.note, job.last.diagnosis) == ("why", FOUND)
    other.close()


def test_a_job_that_was_forgotten_and_comes_back_is_not_taken_for_the_old_one(store: Store) -> None:
    store.intend(record(state=JobState.PENDING), SPEC)
    assert store.job("a00000001") is not None
    other = Store(store.directory)
    other.remove(["a00000001"])
    other.intend(record(state=JobState.RUNNING), SPEC)
    assert [job.state for job in store.jobs("lab")] == [JobState.RUNNING]
    other.close()


def test_only_jobs_that_have_not_ended_are_listed_unless_all_are_wanted(store: Store) -> None:
    for number, state in enumerate(JobState):
        store.intend(record(f"a0000000{number}", state=state), SPEC)
    alive = {job.state for job in store.jobs("lab")}
    assert alive == {state for state in JobState if not state.ended}
    assert {job.state for job in store.jobs("lab", everything=True)} == set(JobState)
    assert store.jobs("elsewhere", everything=True) == ()


def test_the_newest_job_of_a_repeated_slurm_id_comes_first(store: Store) -> None:
    for job_id in ("a00000001", "a00000002"):
        store.intend(record(job_id, attempts=(Attempt(slurm_id="5"),)), SPEC)
    assert [job.id for job in store.by_slurm_id("5", "lab")] == ["a00000002", "a00000001"]
    assert store.by_slurm_id("5", "elsewhere") == ()


def test_facts_come_back_whole(store: Store) -> None:
    facts = SiteFacts("lab", "22.05.8", (Partition("batch", gpu_types=("h100", "a100"), max_time=60),), 10, 99.5)
    assert store.facts("lab") is None
    store.save_facts("lab", facts)
    store.save_facts("lab", dataclasses.replace(facts, version="23.02"))
    assert store.facts("lab") == dataclasses.replace(facts, version="23.02")


def test_the_file_is_private(store: Store) -> None:
    assert store.path.stat().st_mode & 0o077 == 0
    assert store.path.parent.stat().st_mode & 0o077 == 0


def test_a_store_of_a_newer_version_is_refused_with_the_way_out(store: Store, tmp_path: Path) -> None:
    with sqlite3.connect(store.path) as db:
        db.execute("PRAGMA user_version = 999")
    db.close()
    with pytest.raises(ConfigError) as error:
        Store(tmp_path / "state")
    assert "newer version" in error.value.why


def test_a_state_directory_that_is_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("")
    with pytest.raises(ConfigError) as error:
        Store(tmp_path / "state")
    assert "TOWLINE_STATE_DIR" in error.value.fix


def test_many_processes_write_at_once_and_nothing_is_lost(store: Store, tmp_path: Path) -> None:
    code = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[3])
from tests.unit.engine.records import SPEC, record
from towline.engine.store import Store
store = Store(Path(sys.argv[1]))
for number in range(20):
    store.intend(record(f"{sys.argv[2]}{number:07d}0"), SPEC)
"""
    arguments = [sys.executable, "-c", code, str(tmp_path / "state")]
    here = str(Path(__file__).parents[3])
    writers = [subprocess.Popen([*arguments, letter, here]) for letter in "abcd"]
    assert [writer.wait(60) for writer in writers] == [0, 0, 0, 0]
    assert len(store.jobs("lab", everything=True)) == 80
