"""One poll: the queue, accounting for what left it, and the attempts' files, each with its own exit code."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.unit.slurm.stubs import Slurm
from towline.models.job import JobState
from towline.slurm.calls import Call, PollTarget, poll_call
from towline.slurm.parse import SlurmId
from towline.slurm.poll import AttemptFiles, PollAnswer, build_poll_input, parse_poll
from towline.slurm.strangers import split_strangers

RUNNING = "RUNNING|1700000000|1700000010|1700003600|1|node1|None"
AWAY = "slurm_load_jobs error: Unable to contact slurm controller (connect failure)\n"


class Watch:
    def __init__(self, home: Path) -> None:
        self.home = home
        self.slurm = Slurm(home)
        self.root = home / "the root"
        self.calls = 0

    def attempt(self, job: str, number: int = 1, **files: str) -> Path:
        path = self.root / "jobs" / job / "attempts" / str(number)
        (path / "exit").mkdir(parents=True)
        for name, content in files.items():
            (path / name.replace("__", "/")).write_text(content)
        return path

    def poll(self, *targets: PollTarget) -> PollAnswer:
        return self.ask(poll_call(str(self.root), targets))

    def ask(self, call: Call) -> PollAnswer:
        self.calls += 1
        ran = self.slurm.run(call, self.home / f"call{self.calls}")
        assert ran.code == 0, ran
        answer = parse_poll(ran.out)
        assert answer.complete
        return answer


def at(job: str, slurm: str = "", cluster: str = "", attempt: int = 1) -> PollTarget:
    return PollTarget(job, attempt, SlurmId(slurm, cluster) if slurm else None)


@pytest.fixture
def watch(tmp_path: Path) -> Watch:
    return Watch(tmp_path)


def test_living_jobs_come_from_the_queue_alone(watch: Watch) -> None:
    watch.slurm.add(41, "a", RUNNING)
    watch.slurm.add(42, "b", "PENDING|1700000000|N/A|N/A|2||ReqNodeNotAvail, UnavailableNodes:node[1-3]")
    answer = watch.poll(at("j1", "41"), at("j2", "42"))
    first, second = answer.row(SlurmId("41")), answer.row(SlurmId("42"))
    assert first is not None
    assert second is not None
    assert (first.state, first.nodes, first.started, first.reason) == (JobState.RUNNING, "node1", 1700000010, "")
    assert (second.state, second.started) == (JobState.PENDING, None)
    assert second.reason == "ReqNodeNotAvail, UnavailableNodes:node[1-3]"
    assert watch.slurm.calls("sacct") == []
    assert len(watch.slurm.calls("squeue")) == 1
    assert (watch.slurm.state / "squeue.env").read_text() == "SLURM_TIME_FORMAT=%s\n"


def test_accounting_is_asked_only_for_what_is_no_longer_alive(watch: Watch) -> None:
    watch.slurm.add(41, "a", RUNNING)
    watch.slurm.add(42, "b", "FAILED|1|1|1|1|node2|NonZeroExitCode", "FAILED|9:0|1|2|3|node2")
    watch.slurm.add(43, "c", runs="NODE_FAIL|0:0|1|2|3|node1\nCOMPLETED|0:0|4|5|6|node2")
    answer = watch.poll(at("j1", "41"), at("j2", "42"), at("j3", "43"))
    assert [call.split("--jobs=")[1] for call in watch.slurm.calls("sacct")] == ["42,43"]
    history = answer.history(SlurmId("43"))
    assert history is not None
    assert (history.newest.word, [row.word for row in history.earlier]) == ("COMPLETED", ["NODE_FAIL"])
    failed = answer.history(SlurmId("42"))
    assert failed is not None
    assert failed.newest.exit is not None
    assert failed.newest.exit.code == 9
    assert answer.history(SlurmId("41")) is None


def test_one_unknown_id_is_an_answer_and_not_a_failure(watch: Watch) -> None:
    answer = watch.poll(at("j1", "99"))
    query = answer.asked("squeue", SlurmId("99"))
    assert query is not None
    assert (query.exit_code, query.answered) == (1, True)
    assert answer.row(SlurmId("99")) is None
    accounting = answer.asked("sacct", SlurmId("99"))
    assert accounting is not None
    assert accounting.answered


def test_two_unknown_ids_are_an_empty_answer(watch: Watch) -> None:
    answer = watch.poll(at("j1", "98"), at("j2", "99"))
    query = answer.asked("squeue", SlurmId("99"))
    assert query is not None
    assert (query.exit_code, query.answered) == (0, True)
    assert answer.history(SlurmId("99")) is None


def test_a_controller_that_is_away_is_told_apart_from_an_empty_queue(watch: Watch) -> None:
    watch.slurm.set(squeue_fails=AWAY)
    watch.attempt("j1", end="code=0\nverdict=done\n")
    answer = watch.poll(at("j1", "41"))
    query = answer.asked("squeue", SlurmId("41"))
    assert query is not None
    assert not query.answered
    assert "Unable to contact" in query.error
    assert answer.asked("sacct", SlurmId("41")) is None
    assert answer.attempts["j1", 1, None].end == {"code": "0", "verdict": "done"}


def test_a_controller_that_is_away_is_asked_twice_for_many_jobs_and_at_the_same_time(watch: Watch) -> None:
    watch.slurm.set(squeue_fails=AWAY)
    targets = [at(f"j{number}", str(number)) for number in range(1, 2201)]
    answer = watch.poll(*targets)
    assert len(watch.slurm.calls("squeue")) == 2
    queries = [answer.asked("squeue", SlurmId(str(number))) for number in (1, 600, 1200, 1700, 2200)]
    assert [query is not None and not query.answered and query.error for query in queries] == [AWAY.strip()] * 5


def test_many_jobs_that_have_ended_here_and_there_are_one_question_to_accounting(watch: Watch) -> None:
    for number in range(1, 1201):
        if number % 300:
            watch.slurm.add(number, "a", RUNNING)
    watch.poll(*(at(f"j{number}", str(number)) for number in range(1, 1201)))
    assert [call.split("--jobs=")[1] for call in watch.slurm.calls("sacct")] == ["300,600,900,1200"]


def test_the_past_of_a_job_whose_id_the_queue_has_given_away(watch: Watch) -> None:
    ours, other = "/r/jobs/j1", "/home/me"
    watch.slurm.add(
        41, "a", f"{RUNNING}|{other}", f"COMPLETED|0:0|1|2|3|node1|{ours}\nRUNNING|0:0|4|5|Unknown|node1|{other}"
    )
    first = watch.poll(at("j1", "41"))
    assert watch.slurm.calls("sacct") == []
    answer, taken = split_strangers(first, {("", "41"): "j1"})
    assert (answer.row(SlurmId("41")), taken) == (None, {SlurmId("41")})
    told, _ = split_strangers(watch.ask(poll_call(str(watch.root), (), past=taken)), {("", "41"): "j1"})
    history = told.history(SlurmId("41"))
    assert history is not None
    assert (history.newest.word, history.earlier) == ("COMPLETED", ())


def test_tasks_of_two_arrays_with_one_id_share_no_row(watch: Watch) -> None:
    rows = [f"41_{task}|FAILED|1|2|3|1|n|None|/r/jobs/{job}" for task, job in enumerate(["j0", "j1", "j2", "j1", "j1"])]
    watch.slurm.add(41, "a")
    (watch.slurm.state / "job.41" / "row").write_text("".join(f"{row}\n" for row in rows))
    answer = watch.poll(PollTarget("j1", 1, SlurmId("41"), array=True))
    answer, _ = split_strangers(answer, {("", "41"): "j1"})
    assert sorted(sorted(tasks) for tasks, _ in answer.task_rows(SlurmId("41"))) == [[1], [3, 4]]


def test_accounting_that_fails_or_is_off(watch: Watch) -> None:
    watch.slurm.set(sacct_fails="sacct: error: Problem talking to the database: Connection refused\n")
    query = watch.poll(at("j1", "41")).asked("sacct", SlurmId("41"))
    assert query is not None
    assert (query.answered, query.accounting_off) == (False, False)
    watch.slurm.set(sacct_fails="Slurm accounting storage is disabled\n")
    query = watch.poll(at("j1", "41")).asked("sacct", SlurmId("41"))
    assert query is not None
    assert (query.answered, query.accounting_off) == (True, True)


def test_files_of_jobs_that_only_wait_are_looked_at_once_they_do_not_wait_any_more(watch: Watch) -> None:
    for job, slurm, row in (("j1", 41, "PENDING|1|N/A|N/A|1||Priority"), ("j2", 42, RUNNING)):
        watch.attempt(job, start=f"slurm_id={slurm}\n")
        watch.slurm.add(slurm, "a", row)
    targets = [
        PollTarget(job, 1, SlurmId(slurm), lazy=True) for job, slurm in (("j1", "41"), ("j2", "42"), ("j3", "43"))
    ]
    assert set(watch.poll(*targets).attempts) == {("j2", 1, None), ("j3", 1, None)}
    watch.slurm.set(squeue_fails=AWAY)
    assert set(watch.poll(*targets).attempts) == {("j1", 1, None), ("j2", 1, None), ("j3", 1, None)}


def test_an_id_that_slurm_has_given_to_somebody_else_is_not_the_jobs(watch: Watch) -> None:
    watch.slurm.add(41, "a", RUNNING, "COMPLETED|0:0|1|2|3|node1")
    (watch.slurm.state / "job.41" / "owner").write_text("4711")
    answer = watch.poll(at("j1", "41"))
    assert (answer.row(SlurmId("41")), answer.history(SlurmId("41"))) == (None, None)
    foreign = watch.poll(PollTarget(None, 1, SlurmId("41")))
    assert foreign.row(SlurmId("41")) is not None


def test_what_a_job_says_of_its_progress_comes_along(watch: Watch) -> None:
    first = watch.attempt("j1", start="slurm_id=41\n")
    (watch.root / "jobs/j1/results/train").mkdir(parents=True)
    (watch.root / "jobs/j1/results/train/status.json").write_text('{"a": 1}\n@end\n{"b"')
    watch.attempt("j2", start="slurm_id=42\n")
    (watch.root / "jobs/j2/results").mkdir()
    (watch.root / "jobs/j2/results/status.json").symlink_to("/etc/passwd")
    answer = watch.poll(at("j1"), at("j2"))
    files = answer.attempts["j1", 1, None]
    assert (files.report.splitlines()[:3], files.reported) == (['{"a": 1}', "@end", '{"b"'], True)
    assert answer.attempts["j2", 1, None].report == ""
    second = watch.attempt("j1", 2, start="slurm_id=41\n")
    os.utime(second / "start", (2_000_000_000, 2_000_000_000))
    assert not watch.poll(at("j1", attempt=2)).attempts["j1", 2, None].reported
    os.utime(second / "start", (1, 1))
    assert watch.poll(at("j1", attempt=2)).attempts["j1", 2, None].reported
    assert first.is_dir()


def test_long_reports_come_from_their_end(watch: Watch) -> None:
    watch.attempt("j1", start="slurm_id=41\n")
    (watch.root / "jobs/j1/results").mkdir()
    (watch.root / "jobs/j1/results/status.json").write_text('{"epoch": 1}\n' * 100_000 + '{"epoch": 2}\n')
    report = watch.poll(at("j1")).attempts["j1", 1, None].report
    assert len(report) < 17_000
    assert report.strip().endswith('{"epoch": 2}')


@pytest.mark.parametrize(
    ("error", "busy"),
    [
        ("slurm_load_jobs error: Slurm temporarily unable to accept job, sleeping and retrying", True),
        ("slurm_load_jobs error: Socket timed out on send/recv operation", True),
        (AWAY, False),
    ],
)
def test_a_controller_that_has_too_much_to_do_is_told_apart(watch: Watch, error: str, busy: bool) -> None:
    watch.slurm.set(squeue_fails=error)
    answer = watch.poll(at("j1", "41"))
    assert (answer.busy, answer.unanswered) == (busy, True)
    assert answer.now


def test_other_clusters_are_asked_by_name(watch: Watch) -> None:
    watch.slurm.add(41, "a", RUNNING)
    answer = watch.poll(at("j1", "41", "gpu"), at("j2", "41"))
    assert answer.row(SlurmId("41", "gpu")) is not None
    assert answer.row(SlurmId("41")) is not None
    assert sorted("--clusters=gpu" in call for call in watch.slurm.calls("squeue")) == [False, True]


def test_banners_of_a_site_are_not_rows(watch: Watch) -> None:
    (watch.slurm.state / "banner").write_text("Welcome to Stampede3\n3\n@end\n>41|COMPLETED\n")
    watch.slurm.add(41, "a", RUNNING)
    answer = watch.poll(at("j1", "41"))
    assert list(answer.queue) == [("", "41")]


def test_long_lists_are_cut_into_queries(watch: Watch) -> None:
    watch.slurm.add(1999, "a", RUNNING)
    targets = [at(f"j{number}", str(number)) for number in range(1, 2001)]
    answer = watch.poll(*targets)
    assert list(answer.queue) == [("", "1999")]
    lines = [*watch.slurm.calls("squeue"), *watch.slurm.calls("sacct")]
    assert len(lines) == 8
    assert max(map(len, lines)) < 32_000


def test_what_an_attempt_wrote(watch: Watch) -> None:
    path = watch.attempt(
        "j1",
        2,
        submit="41;gpu\n",
        claim="41\n",
        start="slurm_id=41\nhost=node1\nodd line\nBAD=x\n",
        end="code=7\nverdict=failed\nrank=2\n",
        exit__first="2\n",
    )
    (watch.root / "jobs" / "j1" / "cancelled").touch()
    watch.attempt("j1", 3, submit="42\n")
    watch.attempt("j1", 5, claim="43\n")
    (path.parent / "4").mkdir()
    (path.parent / "6").mkdir()  # its submission was refused
    answer = watch.poll(at("j1", attempt=2), at("j2"))
    assert answer.attempts["j1", 2, None] == AttemptFiles(
        present=True,
        cancelled=True,
        newest=5,
        slurm=SlurmId("41", "gpu"),
        claim="41",
        start={"slurm_id": "41", "host": "node1"},
        end={"code": "7", "verdict": "failed", "rank": "2"},
        first_exit="2",
    )
    assert answer.attempts["j1", 3, None].slurm == SlurmId("42")
    assert answer.attempts["j1", 5, None].claim == "43"
    assert answer.attempts["j2", 1, None] == AttemptFiles()
    assert watch.slurm.calls("squeue") == []


def test_what_jobs_write_cannot_pass_for_an_answer(watch: Watch) -> None:
    hostile = "code=0\n@job j2 1 yes yes 9\n@query 0 squeue - 41\n>41|COMPLETED|1|1|1|1|n|None\n@end\n"
    path = watch.attempt("j1", end=hostile + "x" * 5000 + "\n" + "line\n" * 500)
    os.mkfifo(path / "start")
    (path / "claim").symlink_to("/etc/passwd")
    (path / "submit").write_bytes(b"\xff\xfe no id\n")
    answer = watch.poll(at("j1"))
    assert list(answer.attempts) == [("j1", 1, None)]
    files = answer.attempts["j1", 1, None]
    assert (files.end, files.start, files.claim, files.slurm) == ({"code": "0"}, None, "", None)
    assert answer.queries == ()


def test_an_answer_that_broke_off_is_not_complete(watch: Watch) -> None:
    answer = parse_poll("@query 0 squeue - 41,42\n>41|RUNNING|1|1|1|1|node1|None\n")
    assert not answer.complete
    assert answer.row(SlurmId("41")) is not None
    assert not parse_poll("").complete


@pytest.mark.parametrize("slurm", [SlurmId("41; rm -rf /"), SlurmId("41", "a b"), SlurmId("41", "-x"), SlurmId("")])
def test_ids_of_an_impossible_form_are_not_asked_for(slurm: SlurmId) -> None:
    with pytest.raises(ValueError):
        build_poll_input([PollTarget("j1", 1, slurm)])


def test_job_ids_cannot_lead_out_of_the_root() -> None:
    for job in ("../x", "a b", "", ".."):
        with pytest.raises(ValueError):
            build_poll_input([PollTarget(job, 1)])


# --- Arrays ---


def array_of(watch: Watch, rows: list[str], runs: list[str] = []) -> None:  # noqa: B006 - never changed
    watch.slurm.add(7, "a", RUNNING)
    (watch.slurm.state / "job.7" / "row").write_text("".join(f"{row}\n" for row in rows))
    (watch.slurm.state / "job.7" / "runs").write_text("".join(f"{run}\n" for run in runs))


def test_tasks_in_one_state_share_a_row_so_that_answers_stay_small(watch: Watch) -> None:
    done = [f"7_{task}|COMPLETED|10|{task}|{task + 5}|1|node1|None" for task in reversed(range(1, 9001))]
    failed = [f"7_{task}|FAILED|10|20|30|1|node{task}|NonZeroExitCode" for task in range(9001, 9400, 2)]
    array_of(watch, [*done, *failed, "7_[9400-9999%8]|PENDING|10|N/A|N/A|1||JobArrayTaskLimit"])
    call = poll_call(str(watch.root), [PollTarget("j1", 1, SlurmId("7"), array=True)])
    ran = watch.slurm.run(call, watch.home / "call")
    assert len(ran.out) < 4000
    answer = parse_poll(ran.out)
    counted: dict[str, set[int]] = {}
    for tasks, row in answer.task_rows(SlurmId("7")):
        counted.setdefault(row.word, set()).update(tasks)
    assert counted == {
        "COMPLETED": set(range(1, 9001)),
        "FAILED": set(range(9001, 9400, 2)),
        "PENDING": set(range(9400, 10000)),
    }
    completed = [row for _, row in answer.task_rows(SlurmId("7")) if row.word == "COMPLETED"]
    assert (completed[0].nodes, completed[0].ended) == ("node1", 9005)
    assert (completed[1].started, completed[1].ended) == (1, 9004)
    assert watch.slurm.calls("sacct") == []


def test_accounting_is_asked_for_an_array_when_that_is_wanted(watch: Watch) -> None:
    runs = [f"7_{task}|CANCELLED by 100|0:0|10|20|30|node1" for task in range(5)]
    array_of(watch, [], [*runs, "7_5|COMPLETED|0:0|10|20|31|node2"])
    ran = watch.slurm.run(poll_call(str(watch.root), (), "", [SlurmId("7")]), watch.home / "call")
    found = {tasks: each.newest for tasks, each in parse_poll(ran.out).task_histories(SlurmId("7"))}
    assert {tasks: row.state for tasks, row in found.items()} == {
        frozenset([0]): JobState.CANCELLED,
        frozenset([1, 2, 3, 4]): JobState.CANCELLED,
        frozenset([5]): JobState.SUCCEEDED,
    }
    assert "--duplicates" not in watch.slurm.calls("sacct")[0]


def test_one_task_has_files_of_its_own_and_the_arrays_claim(watch: Watch) -> None:
    path = watch.attempt("j1", submit="7\n", claim="7\n", end="code=0\nverdict=done\n")
    for number in (1, 2):
        own = path.parent / str(number) / "task-3"
        (own / "exit").mkdir(parents=True)
        (own / "start").write_text("slurm_id=7_3\n")
        (own / "end").write_text(f"code={number}\nverdict=failed\n")
    (path.parents[1] / "cancelled-3").touch()
    answer = watch.poll(PollTarget("j1", 1, SlurmId("7_3"), 3), PollTarget("j1", 1, SlurmId("7_4"), 4))
    files = answer.attempts["j1", 1, 3]
    assert (files.claim, files.end, files.newest) == ("7", {"code": "1", "verdict": "failed"}, 2)
    assert (files.cancelled, answer.attempts["j1", 1, 4].cancelled) == (True, False)
    assert answer.attempts["j1", 1, 4].end is None


# --- Heterogeneous jobs ---


def test_of_a_heterogeneous_job_the_first_component_counts_and_all_are_told(watch: Watch) -> None:
    rows = ["7+1|RUNNING|10|20|30|2|node[1-2]|None", "7+0|RUNNING|10|20|30|1|cpu1|None"]
    array_of(watch, rows)
    answer = watch.poll(at("j1", "7"))
    row = answer.row(SlurmId("7"))
    assert row is not None
    assert (row.id, row.nodes) == ("7+0", "cpu1")
    assert [(each.slurm_id, each.nodes) for each in answer.components(SlurmId("7"))] == [
        ("7+0", "cpu1"),
        ("7+1", "node[1-2]"),
    ]
    assert watch.slurm.calls("sacct") == []
    ended = [row.replace("RUNNING", "FAILED") for row in rows]
    (watch.slurm.state / "job.7" / "row").write_text("\n".join(ended) + "\n")
    runs = ["7+0|FAILED|4:0|10|20|30|cpu1", "7+1|FAILED|4:0|10|20|30|node[1-2]"]
    (watch.slurm.state / "job.7" / "runs").write_text("\n".join(runs) + "\n")
    history = watch.poll(at("j1", "7")).history(SlurmId("7"))
    assert history is not None
    assert history.newest.exit is not None
    assert (history.newest.id, history.newest.exit.code) == ("7+0", 4)
