from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.unit.cli.fake_cluster import FakeCluster, FakeJob, Forever, ended, err, out, record
from towline.engine.events import StateChanged
from towline.models.errors import SlurmRefused, Unreachable
from towline.models.job import JobState
from towline.models.plan import Check, Verdict

Towline = Callable[..., Any]
TOO_MANY = Check("nodes", Verdict.FAILS, "batch has 4 nodes, 64 are asked for", "Ask for 4 at most.")


def job(*events: Any) -> FakeJob:
    return FakeJob(record(JobState.PENDING), events)


def test_a_misspelt_key_in_a_file_is_told_before_what_is_missing_for_it(towline: Towline, tmp_path: Path) -> None:
    file = tmp_path / "job.yaml"
    file.write_text("comand: [ls]\n")
    ran = towline("run", "-f", str(file))
    assert (ran.status, "did you mean command" in ran.stderr) == (65, True)
    file.write_text("name: a\n")
    ran = towline("run", "-f", str(file))
    assert (ran.status, "the command to run is missing" in ran.stderr) == (64, True)


# --- What becomes of the flags ---


@pytest.mark.parametrize(
    ("args", "field", "value"),
    [
        (["--image", "ubuntu:24.04"], "image", "ubuntu:24.04"),
        (["--name", "tune-7"], "name", "tune-7"),
        (["--nodes", "3"], "resources.nodes", 3),
        (["--gpus-per-node", "8"], "resources.gpus_per_node", 8),
        (["--gpu-type", "h100", "--gpus-per-node", "1"], "resources.gpu_type", "h100"),
        (["--tasks-per-node", "4"], "resources.tasks_per_node", 4),
        (["--cpus-per-task", "2"], "resources.cpus_per_task", 2),
        (["--memory", "64G"], "resources.memory", 65536),
        (["--time", "90m"], "resources.time", 5400),
        (["--exclusive"], "resources.exclusive", True),
        (["--partition", "a,b"], "partition", ("a", "b")),
        (["--account", "proj"], "account", "proj"),
        (["--qos", "high"], "qos", "high"),
        (["--reservation", "r"], "reservation", "r"),
        (["--constraint", "h100&nvl"], "constraint", "h100&nvl"),
        (["--nodelist", "n[1-2]"], "nodelist", "n[1-2]"),
        (["--exclude", "n3"], "exclude", "n3"),
        (["--env", "A=1", "--env", "B=x=y z"], "env", {"A": "1", "B": "x=y z"}),
        (["--env", "A="], "env", {"A": ""}),
        (["--workdir", "/w"], "workdir", "/w"),
        (["--mount-home"], "mount_home", True),
        (["--writable", "yes"], "container.writable", True),
        (["--remap-root", "no"], "container.remap_root", False),
        (["--entrypoint", "no", "--container-name", "w"], "container.name", "w"),
        (["--image-import", "never"], "image_import", "never"),
        (["--launch", "mpi"], "launch", "mpi"),
        (["--secret", "A", "--secret", "B=env:C"], "secrets", ("A", "B")),
        (["--restart", "never"], "restart", "never"),
        (["--comment", "hello there"], "comment", "hello there"),
        (["--gpus", "16"], "resources.gpus", 16),
        (["--gpus", "8", "--cpus-per-gpu", "4"], "resources.cpus_per_gpu", 4),
        (["--memory", "all"], "resources.memory", "all"),
        (["--memory-per-cpu", "2G"], "resources.memory_per_cpu", 2048),
        (["--gpus", "1", "--memory-per-gpu", "2G"], "resources.memory_per_gpu", 2048),
        (["--licenses", "a:2,b"], "resources.licenses", ("a:2", "b")),
        (["--begin", "+2h"], "begin", "now+7200seconds"),
        (["--deadline", "2026-03-01T08:00Z"], "deadline", "uts1772352000"),
        (["--signal", "SIGUSR1"], "signal", "USR1"),
        (["--signal", "10"], "signal", "USR1"),
        (["--grace", "5m"], "grace", 300),
        (["--retries", "2"], "retries", 2),
        (["--checkpoints", "*.pt", "--resume-arg", "--resume"], "resume.args", ("--resume",)),
        (["--resume-code", "85"], "resume.exit_code", 85),
        (["--mail-user", "a@b.c"], "mail.types", ("END", "FAIL")),
        (["--mail-type", "all"], "mail.types", ("ALL",)),
        (["--label", "a=b=c"], "labels", {"a": "b=c"}),
        (["--input", "/d=s3://b/x=y"], "inputs", {"/d": "s3://b/x=y"}),
        (["--sbatch", "switches=2", "--sbatch", "--hold"], "sbatch", {"switches": "2", "hold": ""}),
    ],
)
def test_each_flag_fills_its_field(
    towline: Towline, cluster: FakeCluster, args: list[str], field: str, value: object
) -> None:
    assert towline("run", "--dry-run", *args, "--", "true").status == 0
    found: Any = cluster.specs[0]
    for part in field.split("."):
        found = getattr(found, part)
    assert found == value


def test_mounts_are_read(towline: Towline, cluster: FakeCluster) -> None:
    towline("run", "--dry-run", "--mount", "/d:/data:ro", "--mount", "/e", "--", "true")
    assert [(each.source, each.target, each.mode) for each in cluster.specs[0].mounts] == [
        ("/d", "/data", "ro"),
        ("/e", "/e", "rw"),
    ]


@pytest.mark.parametrize("args", [["--", "python", "t.py", "--json", "-d"], ["python", "t.py", "--json", "-d"]])
def test_the_command_keeps_its_own_options(towline: Towline, cluster: FakeCluster, args: list[str]) -> None:
    ran = towline("run", "--dry-run", *args)
    assert cluster.specs[0].command == ("python", "t.py", "--json", "-d")
    assert ran.stdout.startswith("Checks of job")


def test_arguments_arrive_as_they_are(towline: Towline, cluster: FakeCluster) -> None:
    words = ["sh", "-c", 'echo "$HOME"\n', "", "ü", "a  b"]
    towline("run", "--dry-run", "--", *words)
    assert list(cluster.specs[0].command) == words


def test_shell_text_takes_the_place_of_a_command(towline: Towline, cluster: FakeCluster) -> None:
    towline("run", "--dry-run", "--shell", "a | b")
    assert cluster.specs[0].shell == "a | b"


@pytest.mark.parametrize(
    ("args", "status", "says"),
    [
        ([], 64, "the command to run is missing"),
        (["--"], 64, "the command to run is missing"),
        (["--shell", "a", "--", "b"], 64, "both a command and --shell"),
        (["--env", "HOME", "--", "x"], 64, "--env HOME=VALUE"),
        (["--nodes", "two", "--", "x"], 64, "'two' is not a valid integer"),
        (["--nods", "2", "--", "x"], 64, "--nodes"),
        (["--", ""], 65, "the command is empty"),
        (["--shell", " "], 65, "the command is empty"),
        (["--env", "=1", "--", "x"], 65, "'' is not a name"),
        (["--nodes", "0", "--", "x"], 65, "resources.nodes"),
        (["--gpus-per-node", "-1", "--", "x"], 65, "resources.gpus_per_node"),
        (["--partition", "a\nb", "--", "x"], 65, "partition"),
        (["--comment", "a\n#SBATCH --x", "--", "x"], 65, "comment"),
        (["--image", "UPPER/case", "--", "x"], 65, "image"),
        (["--mount", "data:/x", "--", "x"], 65, "must be an absolute path"),
        (["--time", "soon", "--", "x"], 65, "is not a walltime"),
        (["--restart", "often", "--", "x"], 65, "restart"),
        (["--", "\udcff"], 65, "UTF-8"),
        (["--gpus", "8", "--gpus-per-node", "8", "--", "x"], 65, "gpus and gpus_per_node say the same"),
        (["--gpu-type", "h100", "--", "x"], 65, "how many GPUs"),
        (["--memory", "1G", "--memory-per-cpu", "1G", "--", "x"], 65, "in two ways"),
        (["--begin", "soon", "--", "x"], 65, "is not a time"),
        (["--begin", "2026-02-30", "--", "x"], 65, "is not a time"),
        (["--signal", "KILL", "--", "x"], 65, "signal"),
        (["--grace", "2d", "--", "x"], 65, "grace"),
        (["--resume-arg", "a", "--", "x"], 65, "moves forward"),
        (["--mail-type", "some", "--", "x"], 65, "mail.types"),
        (["--label", "a", "--", "x"], 64, "--label a=TEXT"),
        (["--input", "/d=data", "--", "x"], 65, "`towline push data`"),
        (["--input", "/d=file:///data", "--", "x"], 65, "`towline push /data`"),
        (["--output", "../x=s3://b", "--", "x"], 65, "below the results"),
        (["--sbatch", "output=x", "--", "x"], 65, "sbatch.output cannot be given: the files of a job"),
        (["--sbatch", "time=1", "--", "x"], 65, "write it as resources.time"),
        (["--sbatch", "swiches=1", "--", "x"], 65, "did you mean switches"),
        (["--sbatch", "switches", "--", "x"], 65, "switches takes a value"),
        (["--sbatch", "hold=1", "--", "x"], 65, "hold takes no value"),
        (["--sbatch", "gres=gpu:1", "--", "x"], 65, "resources.gpus"),
        (["--sbatch", "switches=1 --wrap=x", "--", "x"], 65, "#SBATCH"),
    ],
)
def test_bad_input_is_refused_before_the_cluster_is_opened(
    towline: Towline, cluster: FakeCluster, args: list[str], status: int, says: str
) -> None:
    ran = towline("run", *args)
    assert ran.status == status
    assert says in ran.stderr
    assert ran.stderr.startswith("towline: error: ")
    assert ran.stdout == ""
    assert cluster.opened == []


# --- Dry run ---


def test_a_dry_run_shows_all_and_submits_nothing(towline: Towline, cluster: FakeCluster) -> None:
    ran = towline("run", "--dry-run", "--", "true")
    assert ran.status == 0
    for part in ("batch takes jobs", "/lustre/jobs/k3v9x2m4q", "sbatch --parsable", "#SBATCH --nodes=2", "job.json"):
        assert part in ran.stdout
    assert cluster.submitted == 0


def test_a_dry_run_with_a_failing_check_shows_the_fix_and_exits_65(towline: Towline, cluster: FakeCluster) -> None:
    cluster.checks = (*cluster.checks, TOO_MANY)
    ran = towline("run", "--dry-run", "--nodes", "64", "--", "true")
    assert ran.status == 65
    assert "batch has 4 nodes" in ran.stdout
    assert "Ask for 4 at most." in ran.stdout


def test_a_dry_run_as_json_has_the_script_and_the_checks(towline: Towline, cluster: FakeCluster) -> None:
    cluster.checks = (TOO_MANY,)
    ran = towline("run", "--dry-run", "--json", "--", "true")
    assert ran.document["exit"] == {"code": 65, "whose": "towline"}
    plan = ran.document["plan"]
    assert plan["checks"] == [{"name": "nodes", "verdict": "fails", "evidence": TOO_MANY.evidence, "fix": TOO_MANY.fix}]
    assert plan["files"]["script/batch"].startswith("#!/bin/sh\n")
    assert plan["sbatch"] == ["sbatch", "--parsable", "script/batch"]
    assert plan["spec"]["command"] == ["true"]


def test_a_refused_plan_is_an_error_with_reason_and_fix(towline: Towline, cluster: FakeCluster) -> None:
    cluster.checks = (TOO_MANY,)
    ran = towline("run", "--json", "--", "true")
    assert ran.status == 65
    assert ran.document["error"]["code"] == "plan-refused"
    assert "Ask for 4 at most." in ran.stderr
    assert cluster.submitted == 0


# --- Following ---


@pytest.mark.parametrize("code", [0, 1, 7, 126, 127, 137, 200])
def test_the_jobs_code_is_the_commands(towline: Towline, cluster: FakeCluster, code: int) -> None:
    cluster.job = job(StateChanged(ended(code)))
    assert towline("run", "--", "x").status == code


def test_a_job_that_was_cancelled_has_no_code_of_its_own(towline: Towline, cluster: FakeCluster) -> None:
    cluster.job = job(StateChanged(record(JobState.CANCELLED)))
    ran = towline("run", "--json", "--", "x")
    assert ran.status == 72
    assert ran.documents[-1]["exit"] == {"code": 72, "whose": "towline"}


def test_the_log_goes_through_unchanged_and_news_goes_to_stderr(towline: Towline, cluster: FakeCluster) -> None:
    cluster.job = job(
        StateChanged(record(JobState.PENDING, note="nodes are busy")),
        StateChanged(record(JobState.RUNNING, nodes="node[1-2]")),
        out(b"a\x1b[2Jb\xff"),
        err(b"careful\n"),
        out(b"c\n"),
        StateChanged(ended(7, failed_rank=2)),
    )
    ran = towline("run", "--", "x")
    assert ran.stdout.encode(errors="surrogateescape") == b"a\x1b[2Jb\xffc\n"
    assert ran.stderr.splitlines() == [
        "towline: job k3v9x2m4q (train) submitted to fake as Slurm job 41",
        "towline: job k3v9x2m4q is waiting: nodes are busy",
        "towline: job k3v9x2m4q is running on node[1-2]",
        "careful",
        "towline: job k3v9x2m4q failed with exit code 7 (rank 2) after 12s",
    ]


def test_a_pending_reason_is_said_once_while_it_stays(towline: Towline, cluster: FakeCluster) -> None:
    busy, priority = (record(JobState.PENDING, note=note) for note in ("busy", "priority"))
    cluster.job = job(*(StateChanged(each) for each in (busy, busy, priority, ended(0))))
    lines = [line for line in towline("run", "--", "x").stderr.splitlines() if "waiting" in line]
    assert [line.rpartition(": ")[2] for line in lines] == ["busy", "priority"]


def test_text_of_the_cluster_cannot_steer_the_terminal(towline: Towline, cluster: FakeCluster) -> None:
    cluster.job = job(StateChanged(record(JobState.PENDING, note="x\x1b]0;evil\x07\ny")), StateChanged(ended(0)))
    assert "x\\x1b]0;evil\\x07 y\n" in towline("run", "--", "x").stderr


def test_following_as_json_lines(towline: Towline, cluster: FakeCluster) -> None:
    cluster.job = job(StateChanged(record()), out("ü".encode()[:1]), out("ü".encode()[1:]), StateChanged(ended(7)))
    ran = towline("run", "--json", "--", "x")
    assert [each["event"] for each in ran.documents] == ["submitted", "state", "log", "ended"]
    assert ran.documents[2] == {"event": "log", "job_id": "k3v9x2m4q", "stream": "out", "text": "ü"}
    assert ran.documents[3]["exit"] == {"code": 7, "whose": "job"}
    assert ran.stderr == ""


def test_losing_the_cluster_while_following_says_how_to_come_back(towline: Towline, cluster: FakeCluster) -> None:
    cluster.job = job(StateChanged(record()), Unreachable("no login host could be reached"))
    ran = towline("run", "--cluster", "far", "--", "x")
    assert ran.status == 69
    assert "towline logs -f --cluster far k3v9x2m4q" in ran.stderr
    assert cluster.opened == ["far"]


def test_detached_prints_the_id_alone(towline: Towline, cluster: FakeCluster) -> None:
    cluster.job = job(Forever())
    assert towline("run", "--detach", "--", "x").stdout == "k3v9x2m4q\n"
    assert towline("run", "-d", "--json", "--", "x").document["job"]["slurm_ids"] == ["41"]


def test_slurms_refusal_is_told_in_its_words(towline: Towline, cluster: FakeCluster) -> None:
    cluster.refusal = SlurmRefused("Slurm refused the job", why="Invalid account\x1b[2J", fix="Use another account.")
    ran = towline("run", "--", "x")
    assert ran.status == 76
    assert ran.stderr == (
        "towline: error: Slurm refused the job\n  why: Invalid account\\x1b[2J\n  fix: Use another account.\n"
    )


def test_a_job_that_slurm_does_not_take_now_is_held_and_that_is_told(towline: Towline, cluster: FakeCluster) -> None:
    cluster.holds = ("the queue is full", "the queue is full")
    ran = towline("run", "--detach", "--", "x")
    assert ran.stdout == "k3v9x2m4q\n"
    assert ran.stderr.count("is not submitted yet") == 1
    assert "job k3v9x2m4q is not submitted yet: the queue is full; trying again in 8s" in ran.stderr
    cluster.job = job(StateChanged(ended(0)))
    held = towline("run", "--json", "--", "x").documents[0]
    assert (held["event"], held["reason"], held["job"]["id"]) == ("held", "the queue is full", "k3v9x2m4q")


@pytest.mark.parametrize(
    ("words", "patience"),
    [
        ((), None),
        (("--detach",), 300.0),
        (("--patience", "2h"), 7200.0),
        (("--detach", "--patience", "0"), 0.0),
    ],
)
def test_a_detached_job_is_not_held_for_ever(
    towline: Towline, cluster: FakeCluster, words: tuple[str, ...], patience: float | None
) -> None:
    cluster.job = job(StateChanged(ended(0)))
    towline("run", *words, "--", "x")
    assert cluster.patience == patience


# --- A file ---


def test_a_file_describes_the_job_and_flags_win(towline: Towline, cluster: FakeCluster, tmp_path: Path) -> None:
    file = tmp_path / "job.yaml"
    file.write_text("command: [python, train.py]\nname: tune\nresources: {nodes: 2, time: 4h}\n")
    for words in (["run", "--dry-run"], ["plan"]):
        assert towline(*words, "-f", str(file), "--time", "1h").status == 0
        spec = cluster.specs.pop()
        assert (spec.command, spec.name) == (("python", "train.py"), "tune")
        assert (spec.resources.nodes, spec.resources.time) == (2, 3600)
    towline("plan", "-f", str(file), "--", "true")
    assert cluster.specs.pop().command == ("true",)
    assert cluster.submitted == 0


def test_a_wrong_file_is_refused_with_its_line(towline: Towline, cluster: FakeCluster, tmp_path: Path) -> None:
    file = tmp_path / "job.yaml"
    file.write_text("command: [ls]\nresources:\n  gpu: 1\n")
    ran = towline("run", "-f", str(file))
    assert ran.status == 65
    assert f"{file}, line 3: resources.gpu: there is no such setting; did you mean resources.gpus" in ran.stderr
    assert towline("run", "-f", str(tmp_path / "none.yaml")).status == 66
    file.write_text("name: a\n")
    assert towline("run", "-f", str(file)).status == 64
    assert cluster.opened == []


def test_a_file_is_checked_without_a_cluster(towline: Towline, cluster: FakeCluster, tmp_path: Path) -> None:
    file = tmp_path / "job.toml"
    file.write_text('command = ["ls", "-l"]\n[resources]\ntime = "1h"\n')
    assert towline("spec", "check", str(file)).stdout == f"{file} describes job ls: ls -l\n"
    assert towline("spec", "check", str(file), "--json").document["spec"]["resources"]["time"] == 3600
    assert cluster.opened == []


def test_the_schema_is_printed(towline: Towline) -> None:
    schema = json.loads(towline("spec", "schema").stdout)
    assert schema["$id"] == "urn:towline:job:1"
    assert schema["$defs"]["Resources"]["properties"]["gpus"]["description"].startswith("GPUs in total")
