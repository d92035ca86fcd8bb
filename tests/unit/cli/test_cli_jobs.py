from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.unit.cli.fake_cluster import FakeCluster, FakeJob, ended, err, out, record
from towline.cli.status import life_line
from towline.engine.events import (
    NOTHING_LEFT,
    AttemptBegan,
    LogChunk,
    LogRewritten,
    NoAnswer,
    PullReport,
    ResultFile,
    StateChanged,
)
from towline.models.job import Attempt, JobState, Tasks
from towline.models.summary import JobSummary
from towline.models.waiting import Waiting

Towline = Callable[..., Any]
FILES = (ResultFile("model.bin", 3 << 20, 1_000_000), ResultFile("logs/\x1b[2Ja", 7, 1_000_001))


@pytest.fixture
def jobs(cluster: FakeCluster) -> list[FakeJob]:
    """One job runs, one failed with 7, one was cancelled."""
    known = [
        FakeJob(record(job_id="k1aaaaaaa", name="train", nodes="node1"), (out(b"one\n"), StateChanged(ended(0)))),
        FakeJob(ended(7, slurm_id="42"), (out(b"two\n"), err(b"oops\n")), FILES),
        FakeJob(record(JobState.CANCELLED, job_id="k3ccccccc", name="eval", slurm_id="43")),
    ]
    cluster.known = known
    return known


def test_ps_lists_what_has_not_ended_and_all_with_a(towline: Towline, jobs: list[FakeJob]) -> None:
    header, only = towline("ps").stdout.splitlines()
    assert header.split()[:4] == ["ID", "NAME", "STATE", "SLURM"]
    assert only.split()[:5] == ["k1aaaaaaa", "train", "running", "41", "node1"]
    assert len(towline("ps", "-a").stdout.splitlines()) == 1 + len(jobs)
    assert [each["id"] for each in towline("ps", "-a", "--json").document["jobs"]] == [job.id for job in jobs]


def test_ps_follows_the_list_until_no_job_is_left(towline: Towline, jobs: list[FakeJob], cluster: FakeCluster) -> None:
    shown = towline("ps", "-w", "--interval", "5s").stdout.split("\n\n")
    assert [len(part.strip().splitlines()) for part in shown] == [4, 3, 2]
    assert cluster.interval == 5.0
    lists = towline("ps", "-w", "--json").documents
    assert [len(each["jobs"]) for each in lists] == [3, 2, 1, 0]
    assert "2 seconds are the least" in towline("ps", "-w", "--interval", "1").stderr


def test_ps_without_jobs_prints_nothing_into_a_pipe(towline: Towline, cluster: FakeCluster) -> None:
    assert towline("ps").stdout == ""
    assert "No jobs that have not ended" in towline("ps").stderr
    assert towline("ps", "--json").document == {"jobs": []}


def test_the_fields_of_a_job(towline: Towline, jobs: list[FakeJob]) -> None:
    (job,) = towline("status", "42", "--json").document["jobs"]
    assert job.pop("summary")["waiting"] is None
    assert job == {
        "id": "k3v9x2m4q",
        "task": None,
        "name": "train",
        "cluster": "fake",
        "state": "failed",
        "ended": True,
        "note": "",
        "command": "python train.py",
        "directory": "/lustre/jobs/k3v9x2m4q",
        "created": 1_000_000.0,
        "slurm_ids": ["42"],
        "exit_code": 7,
        "attempts": [
            {
                "number": 1,
                "slurm_id": "42",
                "slurm_cluster": "",
                "slurm_state": "",
                "reason": "",
                "nodes": "",
                "submitted": None,
                "started": 100,
                "ended": 112,
                "exit_code": 7,
                "exit_source": "job",
                "failed_rank": None,
                "failed_role": "",
                "task": None,
                "components": [],
                "diagnosis": None,
                "cause": "",
                "evidence": "",
                "bad_nodes": "",
            }
        ],
        "roles": [],
        "tasks": None,
        "progress": None,
    }


def test_status_tells_the_story_of_several_jobs(towline: Towline, jobs: list[FakeJob]) -> None:
    ran = towline("status", "k1aaaaaaa", "42")
    assert ran.status == 0
    assert "job k1aaaaaaa is running on node1" in ran.stdout
    assert "job k3v9x2m4q failed with exit code 7 after 12s" in ran.stdout
    assert "Slurm job 42" in ran.stdout


def test_a_code_that_is_only_slurms_is_marked(towline: Towline, cluster: FakeCluster) -> None:
    cluster.known = [FakeJob(ended(15, exit_source="slurm"))]
    assert "exit code 15 (as Slurm has it)" in towline("status", "41").stdout


def test_an_unknown_job_is_66_and_a_document(towline: Towline, jobs: list[FakeJob]) -> None:
    ran = towline("status", "nope", "--json")
    assert ran.status == 66
    assert ran.document["error"]["code"] == "not-found"
    assert ran.document["exit"] == {"code": 66, "whose": "towline"}
    assert "towline: error: no job 'nope'" in ran.stderr


def test_cancel_leaves_ended_jobs_as_they_are(towline: Towline, jobs: list[FakeJob]) -> None:
    ran = towline("cancel", "k1aaaaaaa", "42")
    assert ran.status == 0
    assert ran.stdout.splitlines() == [
        "job k1aaaaaaa was cancelled",
        "job k3v9x2m4q failed with exit code 7 after 12s",
    ]
    assert [each["state"] for each in towline("cancel", "42", "--json").document["jobs"]] == ["failed"]


def test_cancel_with_an_unknown_job_cancels_none(towline: Towline, jobs: list[FakeJob]) -> None:
    assert towline("cancel", "k1aaaaaaa", "nope").status == 66
    assert "cancel" not in jobs[0].calls


@pytest.mark.parametrize(
    ("codes", "status", "whose"),
    [([0], 0, "job"), ([7], 7, "job"), ([0, 9, 7], 9, "job"), ([0, 0], 0, "job"), ([None, 7], 72, "towline")],
)
def test_wait_exits_with_the_first_code_that_is_not_0(
    towline: Towline, cluster: FakeCluster, codes: list[int | None], status: int, whose: str
) -> None:
    made = [record(JobState.CANCELLED) if code is None else ended(code) for code in codes]
    cluster.known = [FakeJob(each) for each in made]
    for number, job in enumerate(cluster.known):
        job.record = record(job.record.state, job_id=f"k{number}aaaaaaa", exit_code=codes[number])
    names = [job.id for job in cluster.known]
    assert towline("wait", *names).status == status
    ran = towline("wait", "--json", *names)
    assert ran.document["exit"] == {"code": status, "whose": whose}
    assert ran.status == status


@pytest.mark.parametrize(("text", "seconds"), [("90", 90.0), ("0.5", 0.5), ("2h", 7200.0)])
def test_wait_takes_seconds_and_spoken_times(towline: Towline, jobs: list[FakeJob], text: str, seconds: float) -> None:
    ran = towline("wait", "k1aaaaaaa", "--timeout", text)
    assert ran.status == 75
    assert f"wait {seconds}" in jobs[0].calls


@pytest.mark.parametrize("text", ["soon", "-1", "nan", "inf", ""])
def test_wait_refuses_what_is_no_time(towline: Towline, jobs: list[FakeJob], text: str) -> None:
    assert towline("wait", "k1aaaaaaa", f"--timeout={text}").status == 64


def test_logs_of_one_job_come_alone(towline: Towline, jobs: list[FakeJob]) -> None:
    ran = towline("logs", "42", "--tail", "5")
    assert (ran.status, ran.stdout, ran.stderr) == (0, "two\n", "oops\n")
    assert jobs[1].calls == ["read_logs 5"]


def test_logs_of_several_jobs_have_headings(towline: Towline, jobs: list[FakeJob]) -> None:
    ran = towline("logs", "41", "42")
    assert ran.stdout == "==> k1aaaaaaa train <==\none\n\n==> k3v9x2m4q train <==\ntwo\n"


def test_followed_logs_end_with_the_job_and_exit_0(towline: Towline, cluster: FakeCluster) -> None:
    cluster.known = [FakeJob(record(), (out(b"x\n"), StateChanged(ended(7))))]
    ran = towline("logs", "-f", "41")
    assert (ran.status, ran.stdout) == (0, "x\n")
    assert "failed with exit code 7" in ran.stderr
    cluster.known = [FakeJob(record(), (out(b"x\n"), StateChanged(ended(7))))]
    assert [each["event"] for each in towline("logs", "-f", "--json", "41").documents] == ["log", "ended"]


def roles_job() -> FakeJob:
    found = dataclasses.replace(ended(0), roles=("policy", "rollout"))
    chunks = [("one", "policy"), ("\ntwo\n", "policy"), ("x\n", "rollout"), ("y", "rollout"), ("three\n", "policy")]
    return FakeJob(found, tuple(LogChunk("out", text.encode(), role) for text, role in chunks))


def test_lines_of_roles_say_whose_they_are_and_one_can_be_chosen(towline: Towline, cluster: FakeCluster) -> None:
    cluster.known = [roles_job()]
    assert towline("logs", "41").stdout == "policy: one\npolicy: two\nrollout: x\npolicy: three\nrollout: y\n"
    assert towline("logs", "--role", "policy", "41").stdout == "one\ntwo\nthree\n"
    texts = towline("logs", "--json", "--role", "rollout", "41").documents
    assert [(each["role"], each["text"]) for each in texts] == [("rollout", "x\n"), ("rollout", "y")]
    ran = towline("logs", "--role", "nosuch", "41")
    assert ran.status == 64
    assert "policy, rollout" in ran.stderr


def test_a_rank_that_there_is_no_log_of_is_not_taken_for_the_whole_job(towline: Towline, cluster: FakeCluster) -> None:
    running = record(nodes="node1")
    cluster.known = [FakeJob(dataclasses.replace(running, attempts=(Attempt(slurm_id="41", started=1),)), [])]
    assert "has written nothing" in towline("logs", "41").stderr
    said = towline("logs", "--rank", "9", "--node", "node2", "41").stderr
    assert "no log of rank 9 and node node2" in said
    assert "`towline logs k3v9x2m4q` shows all" in said


def test_lines_of_ranks_and_nodes_say_whose_they_are(towline: Towline, cluster: FakeCluster) -> None:
    chunks = [
        LogChunk("out", b"epoch 1\nstep 1\rstep 2\rst", rank=0, node="n1"),
        LogChunk("err", b"\x1b[31mno\x1b[0m", rank=11, node="n2"),
        LogChunk("out", b"ep 3\n", rank=0, node="n1"),
        LogChunk("out", b"all\n", node="n2"),
        LogChunk("out", b"own\n"),
    ]
    cluster.known = [FakeJob(ended(0), chunks)]
    ran = towline("logs", "41")
    assert (ran.stdout, ran.stderr) == ("0: epoch 1\n0: step 3\nn2: all\nown\n", "11: \x1b[31mno\x1b[0m\n")
    assert towline("logs", "--grep", "^(step|no)", "41").stdout == "0: step 3\n"
    found = towline("logs", "--json", "--grep", "^no", "41").documents
    assert found == [
        {
            "event": "log",
            "job_id": "k3v9x2m4q",
            "stream": "err",
            "rank": 11,
            "node": "n2",
            "text": "\x1b[31mno\x1b[0m\n",
        }
    ]
    assert towline("logs", "--grep", "(", "41").status == 64
    assert towline("logs", "--node", "a b", "41").status == 64


def test_what_is_old_is_left_out_as_far_as_lines_say_when(towline: Towline, cluster: FakeCluster) -> None:
    text = b"2026-03-10 11:40:00 old\n  more of it\n[2026-03-10T11:55:00Z] new\n  and more\n"
    cluster.known = [FakeJob(ended(0), (out(text), err(b"no times\n"), err(b"I0310 08:00:00.1 old\n")))]
    ran = towline("logs", "--since", "10m", "41")
    assert (ran.stdout, ran.stderr) == ("[2026-03-10T11:55:00Z] new\n  and more\n", "no times\n")
    assert towline("logs", "--since", "1h", "--grep", "old", "41").stdout == "2026-03-10 11:40:00 old\n"
    assert towline("logs", "--since", "soon", "41").status == 64


def test_a_job_without_a_log_says_why(towline: Towline, cluster: FakeCluster) -> None:
    cluster.known = [FakeJob(record(JobState.PENDING, note="it waits for resources"))]
    ran = towline("logs", "41")
    assert (ran.status, ran.stdout) == (0, "")
    assert "job k3v9x2m4q has not started: it waits for resources" in ran.stderr
    cluster.known = [FakeJob(record(JobState.CANCELLED))]
    assert "never started, so it has no log" in towline("logs", "41").stderr
    assert towline("logs", "--json", "41").documents[0]["event"] == "no-log"


def test_marks_in_a_followed_log(towline: Towline, cluster: FakeCluster) -> None:
    events = (out(b"one"), AttemptBegan(2), out(b"two\n"), LogRewritten("2/main.out"), StateChanged(ended(0)))
    cluster.known = [FakeJob(record(), events)]
    assert "attempt 2 begins here" in towline("logs", "-f", "41").stderr
    cluster.known = [FakeJob(record(), events)]
    documents = towline("logs", "-f", "--json", "41").documents
    assert [each["event"] for each in documents] == ["log", "attempt", "log", "rewritten", "ended"]


def test_logs_as_json_name_job_and_stream(towline: Towline, jobs: list[FakeJob]) -> None:
    assert towline("logs", "--json", "42").documents == [
        {"event": "log", "job_id": "k3v9x2m4q", "stream": "out", "text": "two\n"},
        {"event": "log", "job_id": "k3v9x2m4q", "stream": "err", "text": "oops\n"},
    ]


def test_results_are_listed(towline: Towline, jobs: list[FakeJob]) -> None:
    _, first, second = towline("results", "42").stdout.splitlines()
    assert first.startswith("3.0 MiB")
    assert first.endswith("model.bin")
    assert second.endswith("logs/\\x1b[2Ja")
    files = [{"path": file.path, "size": file.size, "modified": file.modified, "readable": True} for file in FILES]
    assert towline("results", "42", "--json").document == {
        "results": [{"job_id": "k3v9x2m4q", "files": files, "outputs": ""}]
    }


def test_no_results_is_no_error(towline: Towline, jobs: list[FakeJob]) -> None:
    ran = towline("results", "43")
    assert (ran.status, ran.stdout) == (0, "")
    assert "no results" in ran.stderr


def test_results_are_pulled_to_an_absolute_place(
    towline: Towline, jobs: list[FakeJob], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    told = towline("results", "42", "--pull", "here").stderr
    assert "2 files, 3.0 MiB" in told
    assert "1 of them here before" in told
    assert "still being written: log" in told
    pulled: dict[str, Any] = {
        "files": 2,
        "bytes": (3 << 20) + 7,
        "destination": str(tmp_path / "here"),
        "refused": [],
        "received": 7,
        "kept": 1,
        "grown": ["log"],
        "way": "tar: few files",
        "unfinished": [],
    }
    assert towline("results", "42", "--pull", "here", "--json").document == {
        "results": [{"job_id": "k3v9x2m4q", "pulled": pulled}]
    }


def test_a_pull_of_a_job_without_results_says_so(towline: Towline, jobs: list[FakeJob], tmp_path: Path) -> None:
    jobs[1].pulled = PullReport(0, 0, tmp_path, way=NOTHING_LEFT)
    assert "the job left nothing in $TOWLINE_RESULTS_DIR" in towline("results", "42", "--pull", str(tmp_path)).stderr


def test_results_of_several_jobs_get_a_directory_each(towline: Towline, jobs: list[FakeJob], tmp_path: Path) -> None:
    listed = towline("results", "42", "43")
    assert listed.stdout.count("job ") == 2
    done = towline("results", "42", "43", "--pull", str(tmp_path), "--json").document["results"]
    assert [each["pulled"]["destination"] for each in done] == [str(tmp_path / each["job_id"]) for each in done]
    assert len({each["job_id"] for each in done}) == 2


def test_silence_of_the_cluster_is_told_and_following_goes_on(towline: Towline, cluster: FakeCluster) -> None:
    def job() -> FakeJob:
        return FakeJob(record(), (NoAnswer("login: no\nroute"), out(b"x\n"), StateChanged(ended(0))))

    cluster.known = [job()]
    ran = towline("logs", "-f", "41")
    assert (ran.status, ran.stdout) == (0, "x\n")
    assert "no answer from the cluster, trying again" in ran.stderr
    assert "(login: no route)" in ran.stderr
    cluster.known = [job()]
    first, *_ = towline("logs", "-f", "--json", "41").documents
    assert first == {"event": "no-answer", "job_id": "k3v9x2m4q", "reason": "login: no\nroute"}


def test_a_directory_that_cannot_be_read_is_listed_as_such(towline: Towline, cluster: FakeCluster) -> None:
    files = (ResultFile("a", 1, 2), ResultFile("closed", 0, 2, readable=False))
    cluster.known = [FakeJob(ended(0), files=files)]
    assert "closed/ (cannot be read)" in towline("results", "41").stdout
    (result,) = towline("results", "41", "--json").document["results"]
    assert [file["readable"] for file in result["files"]] == [True, False]


# --- Arrays ---


def array() -> FakeJob:
    failure = Attempt(
        1, "41_3", slurm_state="FAILED", nodes="node1", exit_code=7, exit_source="job", failed_rank=0, task=3
    )
    tasks = Tasks("0-9%4", pending="8-9", running="6-7", succeeded="0-2,4-5", failed="3", failures=(failure,))
    note = "6 of 10 tasks have ended; 1 of 10 failed (3)"
    return FakeJob(dataclasses.replace(record(JobState.RUNNING, note=note), tasks=tasks), (out(b"hello\n"),))


def test_an_arrays_status_counts_its_tasks_and_names_those_that_failed(towline: Towline, cluster: FakeCluster) -> None:
    cluster.known = [array()]
    text = towline("status", "train").stdout
    assert "is running: 2 pending, 2 running, 5 succeeded, 1 failed (3)" in text
    assert "0-9%4: 2 pending, 2 running (6-7), 5 succeeded, 1 failed (3)" in text
    assert "task 3     Slurm job 41_3, FAILED, on node1, exit code 7, rank 0" in text
    (job,) = towline("status", "train", "--json").document["jobs"]
    assert (job["tasks"]["running"], job["tasks"]["failures"][0]["task"]) == ("6-7", 3)


def test_of_an_array_every_log_is_printed_and_all_are_followed_together(towline: Towline, cluster: FakeCluster) -> None:
    cluster.known = [array()]
    text = towline("logs", "train").stdout
    assert text.count("hello") == 8
    assert "==> k3v9x2m4q_3 train <==" in text
    chunks = [LogChunk("out", f"{task} of 2\n".encode(), task=task, attempt=task) for task in (1, 2)]
    cluster.known = [FakeJob(array().record, (*chunks, StateChanged(array().record)))]
    assert towline("logs", "-f", "train").stdout == "1: 1 of 2\n2: 2 of 2\n"


def test_status_says_why_a_job_waits_and_what_it_has_used(towline: Towline, jobs: list[FakeJob]) -> None:
    waiting = Waiting(
        "Resources", "It waits.", facts=("1 of 4 nodes is free",), start_in=3600, sooner=("with 1 node it could start",)
    )
    jobs[0].record = record(JobState.PENDING, job_id="k1aaaaaaa", submitted=1_000_010, reason="Resources")
    jobs[0].figures = JobSummary(nodes=2, gpus=16, time=7200, waited=90, gpu_hours_most=32.0, waiting=waiting)
    shown = towline("status", "k1aaaaaaa").stdout
    lines = {label: rest for label, _, rest in (line.strip().partition("  ") for line in shown.splitlines())}
    assert lines["because"].strip() == "1 of 4 nodes is free"
    assert lines["sooner"].strip() == "with 1 node it could start"
    assert lines["start"].strip().startswith("in 1h00m")
    assert lines["asks for"].strip() == "2 nodes, 16 GPUs, for 2h00m"
    assert lines["life"].strip().endswith("pending now")
    jobs[0].figures = JobSummary(waiting=Waiting("JobHeldAdmin", "It is held.", blocked=True, way_out="Ask."))
    assert "it will not start unless" in towline("status", "k1aaaaaaa").stdout


def test_the_life_of_a_job_is_one_line() -> None:
    first = Attempt(1, "41", slurm_state="NODE_FAIL", nodes="node1", submitted=100, started=200, ended=300)
    second = Attempt(2, "41", nodes="node2", submitted=310, started=400, ended=500, exit_code=0)
    done = dataclasses.replace(record(JobState.SUCCEEDED), created=90, attempts=(first, second))
    words = [re.sub(r"( [\d-]{10})? [\d:]{8}$", "", step) for step in life_line(done).split(" → ")]
    assert words == [
        "created",
        "queued",
        "started on node1",
        "NODE_FAIL",
        "queued as attempt 2",
        "started on node2",
        "succeeded",
    ]


def test_wait_and_logs_take_an_interval_as_the_others_do(towline: Towline, jobs: list[FakeJob]) -> None:
    towline("wait", "train", "--interval", "2s")
    towline("logs", "-f", "train", "--interval", "10")
    assert [call for call in jobs[0].calls if "every" in call] == ["wait None every 2", "follow None every 10"]
    for words in (("wait", "train"), ("logs", "-f", "train")):
        assert "2 seconds are the least" in towline(*words, "--interval", "1").stderr
