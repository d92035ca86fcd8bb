"""The folder of a run: whole files, every change once, and no word that undoes an end."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from towline.engine.redaction import conceal
from towline.models.errors import SpecError
from towline.tao.action_workflow import ActionWorkflow
from towline.tao.models import Job, JobStatus


def job(name: str) -> Job:
    return Job(id=name, network_arch="dino", action="train", workspace_id="slurm", backend_job_id=f"tao-job-{name}")


def begun(tmp_path: Path, *names: str) -> ActionWorkflow:
    workflow = ActionWorkflow(tmp_path, "dino", "20260427")
    for name in names:
        workflow.write_submission(job(name), specs={"lr": 0.1}, script_runner={"path": tmp_path})
    return workflow


def events(workflow: ActionWorkflow) -> list[tuple[str, str]]:
    lines = workflow.events_path.read_text().splitlines()
    return [(each["job_id"], each["status"]) for each in map(json.loads, lines)]


def active(workflow: ActionWorkflow) -> list[str]:
    return [each["job_id"] for each in json.loads(workflow.active_jobs_path.read_text())]


def test_several_jobs_end_one_by_one(tmp_path: Path) -> None:
    workflow = begun(tmp_path, "one", "two")
    workflow.sync_status(JobStatus("one", "Complete"), logs="the end\n")
    assert active(workflow) == ["two"], "the other one goes on"
    status = json.loads(workflow.status_path.read_text())
    assert status["job_status"]["status"] == "Complete"
    assert status["jobs"]["two"]["job_status"]["status"] == "Pending"
    assert status["specs"] == {"lr": 0.1}
    assert workflow.logs_path.read_text() == "the end\n"
    workflow.sync_status(JobStatus("two", "Error"), failure_analysis={"err_class": "ERR_PROGRAM"})
    assert active(workflow) == []
    assert json.loads(workflow.failure_analysis_path.read_text())["err_class"] == "ERR_PROGRAM"


def test_unknown_is_no_end_and_an_end_stays(tmp_path: Path) -> None:
    workflow = begun(tmp_path, "one")
    workflow.sync_status(JobStatus("one", "Unknown"))
    assert active(workflow) == ["one"]
    workflow.sync_status(JobStatus("one", "Canceled"))
    workflow.sync_status(JobStatus("one", "Running"))
    assert active(workflow) == []
    assert events(workflow) == [("one", "Pending"), ("one", "Unknown"), ("one", "Canceled")]


def test_every_change_is_told_once_whoever_sees_it(tmp_path: Path) -> None:
    begun(tmp_path, "one")

    def watch() -> None:
        workflow = ActionWorkflow.from_workspace(tmp_path / "dino" / "20260427")
        for word in ("Running", "Running", "Complete"):
            workflow.sync_status(JobStatus("one", word))

    watchers = [threading.Thread(target=watch) for _ in range(4)]
    for each in watchers:
        each.start()
    for each in watchers:
        each.join()
    told = events(ActionWorkflow.from_workspace(tmp_path / "dino" / "20260427"))
    assert told.count(("one", "Complete")) == 1
    assert told[-1] == ("one", "Complete")


class Foreign:
    """Another SDK's answers."""

    def __init__(self) -> None:
        self.word = "Running"
        self.asked: list[str] = []

    def get_job_status(self, job_id: str) -> Any:
        return SimpleNamespace(job_id=job_id, status=self.word, message="", updated_at="later")

    def get_job_logs(self, job_id: str, tail: int | None = None) -> str:
        return f"{tail} lines of {job_id}"

    def get_failure_analysis(self, job_id: str) -> dict[str, Any]:
        self.asked.append(job_id)
        return {"reason": "a bad checkpoint"}


def test_a_foreign_sdk_is_asked_why_only_after_a_failure(tmp_path: Path) -> None:
    workflow, sdk = begun(tmp_path, "one"), Foreign()
    assert workflow.sync_from_sdk(sdk, "one").status == "Running"
    assert sdk.asked == []
    sdk.word = "Error"
    assert workflow.sync_from_sdk(sdk, "one").status == "Error"
    assert sdk.asked == ["one"]
    assert workflow.logs_path.read_text() == "200 lines of one"


def test_no_secret_gets_into_the_folder(tmp_path: Path) -> None:
    conceal(["sesame-open-up"])
    workflow = begun(tmp_path, "one")
    workflow.write_metadata(env={"TOKEN": "sesame-open-up"}, path=tmp_path, nodes={1})
    workflow.sync_status(JobStatus("one", "Error", "sesame-open-up"), logs="sesame-open-up")
    texts = [path.read_text() for path in workflow.workspace.iterdir()]
    assert not any("sesame" in text for text in texts)
    assert json.loads(workflow.metadata_path.read_text())["nodes"] == [1]


def test_a_reader_never_finds_half_a_file(tmp_path: Path) -> None:
    workflow = begun(tmp_path, "one")
    over = threading.Event()

    def write() -> None:
        for number in range(60):
            workflow.write_metadata(number=number, text="x" * 20000)
        over.set()

    writer = threading.Thread(target=write)
    writer.start()
    while not over.is_set():
        if workflow.metadata_path.exists():
            json.loads(workflow.metadata_path.read_text())
    writer.join()


BROKEN = (
    b"",
    b"\xff\xfe{{",
    b'{"jobs": {"one": {"job"',
    b"[1]",
    b'{"jobs": []}',
    b'{"jobs": null}',
    b'{"jobs": {"one": null}}',
    b'{"jobs": {"one": {"job": {}}}}',
    b'{"jobs": {"one": {"job": null, "job_status": "Running"}}}',
    b'{"jobs": {"one": {"job_status": {"status": null}}}}',
    b'{"job": 1, "job_status": {"status": "Running"}}',
)


@pytest.mark.parametrize("content", BROKEN)
def test_a_status_that_somebody_left_broken_stops_nobody(tmp_path: Path, content: bytes) -> None:
    for number, note in enumerate((lambda: None, lambda: begun(tmp_path, "one"))):
        workflow = ActionWorkflow(tmp_path, "dino", "20260427")
        workflow.status_path.write_bytes(content)
        assert set(workflow.active_jobs) <= {"one"}
        note()
        workflow.sync_status(JobStatus("one", "Running", f"epoch {number}"))
        assert workflow.active_jobs == ("one",)
        assert active(workflow) == ["one"]


def test_a_run_of_taos_own_sdk_is_gone_on_with(tmp_path: Path) -> None:
    workflow = ActionWorkflow(tmp_path, "dino", "20260427")
    theirs = {"job": {"id": "one", "action": "train"}, "job_status": {"job_id": "one", "status": "Running"}}
    workflow.status_path.write_text(json.dumps(theirs))
    assert workflow.active_jobs == ("one",)
    workflow.sync_status(JobStatus("one", "Complete"))
    assert workflow.active_jobs == ()
    assert json.loads(workflow.status_path.read_text())["jobs"]["one"]["job"]["action"] == "train"


def test_an_event_that_was_cut_off_spoils_no_other(tmp_path: Path) -> None:
    workflow = begun(tmp_path, "one")
    with workflow.events_path.open("a") as file:
        file.write('{"half')
    workflow.sync_status(JobStatus("one", "Running"))
    first, half, last = workflow.events_path.read_text().splitlines()
    assert (json.loads(first)["status"], half, json.loads(last)["status"]) == ("Pending", '{"half', "Running")


@pytest.mark.parametrize("name", ["", "..", "../x", "a/../../b", "/etc", "a\0b"])
def test_a_run_stays_in_its_folder(tmp_path: Path, name: str) -> None:
    for names in ((name, "now"), ("run", name)):
        with pytest.raises(SpecError, match="no name of a run"):
            ActionWorkflow(tmp_path / "runs", *names)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("status", [None, JobStatus("", "Running"), SimpleNamespace(job_id="one")])
def test_what_is_no_status_is_not_noted(tmp_path: Path, status: Any) -> None:
    workflow = begun(tmp_path, "one")
    with pytest.raises(SpecError, match="no status of a job"):
        workflow.sync_status(status)
    assert workflow.active_jobs == ("one",)
