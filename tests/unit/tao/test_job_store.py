"""Rows of jobs, and what is taken over of NVIDIA's SDK."""

from __future__ import annotations

import sqlite3
import threading
from pathlib import Path

import pytest

from towline.models.errors import ConfigError
from towline.tao.job_store import JobStore

THEIR_SCHEMA = """
CREATE TABLE jobs (
    job_id TEXT PRIMARY KEY, network_arch TEXT NOT NULL, action TEXT NOT NULL, workspace_id TEXT NOT NULL,
    backend_type TEXT, backend_job_id TEXT, status TEXT, parent_job_id TEXT, image TEXT, specs TEXT, results_dir TEXT,
    local_results_dir TEXT, base_checkpoint TEXT, plan_id TEXT, step_id INTEGER, last_epoch INTEGER, instance_id TEXT,
    created_at TEXT NOT NULL, updated_at TEXT NOT NULL);
CREATE TABLE checkpoints (id INTEGER PRIMARY KEY AUTOINCREMENT, job_id TEXT NOT NULL, path TEXT NOT NULL,
    epoch INTEGER, format TEXT, created_at TEXT NOT NULL);
INSERT INTO jobs VALUES ('0b9f', 'dino', 'train', 'ws', 'slurm', 'tao-job-0b9f', 'Complete', NULL, 'img', '{"lr": 1}',
    'lustre:///r/0b9f', '', '', '', 0, 7, '', '2026-01-01', '2026-01-02');
INSERT INTO checkpoints VALUES (1, '0b9f', '/r/0b9f/a.pth', 7, 'pth', '2026-01-02');
"""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("TOWLINE_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.delenv("TAO_SDK_STATE_DIR", raising=False)
    return tmp_path


def theirs(directory: Path) -> Path:
    directory.mkdir(parents=True)
    path = directory / "tao_session_state.db"
    with sqlite3.connect(path) as db:
        db.executescript(THEIR_SCHEMA)
    db.close()
    return path


@pytest.mark.parametrize("place", ["home", "variable"])
def test_state_of_their_sdk_is_taken_over_once(home: Path, monkeypatch: pytest.MonkeyPatch, place: str) -> None:
    directory = home / (".tao_sdk" if place == "home" else "elsewhere")
    if place == "variable":
        monkeypatch.setenv("TAO_SDK_STATE_DIR", str(directory))
    before = theirs(directory).read_bytes()
    with JobStore() as store:
        (row,) = store.list_jobs()
        assert (row["job_id"], row["status"], row["specs"], row["last_epoch"]) == ("0b9f", "Complete", {"lr": 1}, 7)
        assert (store.get_latest_checkpoint("0b9f") or {})["path"] == "/r/0b9f/a.pth"
        store.delete_checkpoints("0b9f")
    with JobStore() as store:
        assert store.get_checkpoints("0b9f") == [], "it is not taken over again"
    assert (directory / "tao_session_state.db").read_bytes() == before, "their file stays as it was"


def test_files_that_lie_about_are_not_looked_at(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    theirs(home / "work")
    monkeypatch.chdir(home / "work")
    with JobStore() as store:
        assert store.list_jobs() == []


def test_a_broken_file_is_told(home: Path) -> None:
    (home / ".tao_sdk").mkdir()
    (home / ".tao_sdk" / "tao_session_state.db").write_text(
        "no database at all, but long enough to be taken for one" * 9
    )
    with pytest.raises(ConfigError, match=r"\.tao_sdk"):
        JobStore()


def test_the_word_of_an_end_never_changes() -> None:
    with JobStore(":memory:") as store:
        store.create_job("one", status="Pending", specs={"a": 1}, parent_job_id="zero", results_dir="/r/one")
        assert not store.create_job_if_absent("one", status="Error")
        assert store.update_job_status("one", "Complete")
        assert not store.update_job_status("one", "Running")
        store.create_job("one", status="Pending")
        assert (store.get_job("one") or {})["status"] == "Complete"
        assert not store.update_job_status("two", "Running")
        assert not store.compare_and_set_job_status("one", ("Running", "Pending"), "Canceling")
        assert store.get_parent_job("one") is None
        assert [row["job_id"] for row in store.list_jobs(status="Complete", limit=1)] == ["one"]


def test_threads_and_processes_share_a_file(tmp_path: Path) -> None:
    stores = [JobStore(tmp_path / "jobs.db") for _ in range(2)]

    def write(store: JobStore, name: str) -> None:
        for number in range(20):
            store.create_job(f"{name}-{number}")

    threads = [threading.Thread(target=write, args=(store, str(n))) for n, store in enumerate([*stores, stores[0]])]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(stores[1].list_jobs()) == 60
    for store in stores:
        store.close()


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"active_jobs": [1]}', '{"active_jobs": [{"a": 2}]}', '{"active_jobs": null}']
)
def test_what_is_no_state_file_is_told(tmp_path: Path, text: str) -> None:
    (tmp_path / "state.json").write_text(text)
    with JobStore(":memory:") as store, pytest.raises(ConfigError, match="is no state file of TAO's SDK"):
        store.import_from_state_file(tmp_path / "state.json")
