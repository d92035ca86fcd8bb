"""The main job: through ssh, sbatch, srun and a container, and back."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import pytest

from tests.lab.terminal import PATIENCE, Done, Terminal
from towline.lab import Lab

BUSYBOX = "/lustre/images/busybox.sqsh"


@pytest.fixture
def towline(lab: Lab, tmp_path: Path) -> Terminal:
    return Terminal(tmp_path / "state")


def accounted(lab: Lab, slurm_id: str) -> str:
    """Accounting's state word of a job, once it has one that is an end."""
    for _ in range(100):
        asked = lab.run_on("login1", ["sacct", "-XnP", "-o", "State", "-j", slurm_id], user="alice")
        state = asked.stdout.split()[0] if asked.stdout.split() else ""
        if state not in ("", "PENDING", "RUNNING", "COMPLETING"):
            return state
    raise AssertionError(f"job {slurm_id} never ended in accounting")


def test_a_job_runs_in_its_image_and_its_output_comes_back(towline: Terminal) -> None:
    done = towline("run", "--image", BUSYBOX, "--", "sh", "-c", '. /etc/os-release; echo "in $NAME"; echo oops >&2')
    assert done.code == 0, done
    assert done.out == "in LabBusybox\n"
    assert "oops\n" in done.err


def test_four_nodes_of_eight_tasks_know_their_place(towline: Terminal) -> None:
    line = 'echo "$RANK $LOCAL_RANK $NODE_RANK $WORLD_SIZE $NNODES $MASTER_ADDR $MASTER_PORT $(hostname)"'
    done = towline("run", "--nodes", "4", "--tasks-per-node", "8", "--gpus-per-node", "8", "--", "sh", "-c", line)
    assert done.code == 0, done
    rows = [row.split() for row in done.out.splitlines()]
    assert sorted(int(row[0]) for row in rows) == list(range(32))
    assert {row[1] for row in rows} == {str(number) for number in range(8)}
    assert {(row[2], row[7]) for row in rows} == {(str(number), f"node{number + 1}") for number in range(4)}
    assert {tuple(row[3:7]) for row in rows} == {("32", "4", "node1", rows[0][6])}


ENDS = {
    **{f"exit {code}": (["sh", "-c", f"exit {code}"], code) for code in (1, 7, 126, 127, 137, 200)},
    "no such command": (["nosuchcommand"], 127),
    "no program": (["/etc/passwd"], 126),
    "killed": (["sh", "-c", "kill -KILL $$"], 137),
}
"""How a command ends → the command, and the code that it has in a shell."""


@pytest.fixture(scope="module")
def ends(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Done]:
    """The commands of `ENDS`, which end side by side, each followed by a `towline run`. Some would be started again."""
    towline = Terminal(tmp_path_factory.mktemp("ends") / "state")
    words = ("run", "--json", "--restart", "never", "--cpus-per-task", "1", "--")
    with contextlib.ExitStack() as stack:
        running = {name: stack.enter_context(towline.start(*words, *command)) for name, (command, _) in ENDS.items()}
        texts = {name: process.communicate(timeout=PATIENCE) for name, process in running.items()}
    return {name: Done(process.returncode, *texts[name]) for name, process in running.items()}


@pytest.mark.parametrize("end", ENDS)
def test_a_commands_exit_code_comes_back_and_slurm_says_failed(ends: dict[str, Done], lab: Lab, end: str) -> None:
    done, code = ends[end], ENDS[end][1]
    assert done.code == code, done
    ended = done.lines[-1]
    assert ended["event"] == "ended"
    assert ended["exit"] == {"code": code, "whose": "job"}
    assert ended["job"]["attempts"][-1]["exit_source"] == "job"
    assert accounted(lab, ended["job"]["slurm_ids"][0]) == "FAILED"


def test_the_rank_that_failed_first_gives_the_code(towline: Terminal) -> None:
    script = 'if [ "$RANK" = 2 ]; then exit 7; fi; sleep 300'
    done = towline("run", "--json", "--nodes", "2", "--tasks-per-node", "4", "--", "sh", "-c", script)
    assert done.code == 7, done
    assert done.lines[-1]["job"]["attempts"][-1]["failed_rank"] == 2


def test_the_log_is_followed_while_it_is_written(towline: Terminal, lab: Lab) -> None:
    """The job goes on only after its first line was seen here: nothing but following can let it end."""
    gate = f"/lustre/alice/gate-{towline.state.parent.name}"
    script = f'echo begun; while [ ! -e {gate} ]; do sleep 0.1; done; rm {gate}; echo "done: $GREETING"; exit 3'
    process = towline.start("run", "--env", "GREETING=a 'b' $c\u00e9", "--", "sh", "-c", script)
    with process:
        assert process.stdout is not None
        assert process.stdout.readline() == "begun\n"
        lab.run_on("login1", ["touch", gate], user="alice")
        out, err = process.communicate(timeout=120)
    assert (process.returncode, out) == (3, "done: a 'b' $cé\n"), err


def test_arguments_reach_the_command_byte_for_byte(towline: Terminal) -> None:
    words = ["a b", "", "'", '"', "$HOME", "`id`", "\\", "new\nline", "é", "*", "--flag", ";"]
    done = towline("run", "--", "python3", "-c", "import sys, json; print(json.dumps(sys.argv[1:]))", *words)
    assert done.code == 0, done
    assert done.json == words


def test_shell_text_runs_as_it_is_written(towline: Terminal) -> None:
    done = towline("run", "--shell", "echo one |\n tr o 0; exit 4")
    assert (done.code, done.out) == (4, "0ne\n"), done


def test_mounts_and_workdir_are_there(towline: Terminal, lab: Lab) -> None:
    lab.run_on("login1", ["sh", "-c", "mkdir -p /lustre/alice/data && echo 42 >/lustre/alice/data/x"], user="alice")
    mount = "/lustre/alice/data:/data:ro"
    done = towline("run", "--mount", mount, "--workdir", "/data", "--shell", "pwd; cat x; touch y; echo $?")
    assert done.code == 0, done
    assert done.out == "/data\n42\n1\n"


def test_results_have_a_place_and_a_link(towline: Terminal, lab: Lab) -> None:
    job = towline.submit("--shell", 'echo 1 >"$TOWLINE_RESULTS_DIR/a"')
    assert towline("wait", job).code == 0
    directory = towline.job(job)["directory"]
    assert lab.run_on("login1", ["cat", f"{directory}/../../results/{job}/a"], user="alice").stdout == "1\n"
    modes = lab.run_on("login1", ["stat", "-c", "%a %U", directory, f"{directory}/.."], user="alice").stdout
    assert modes == "700 alice\n700 alice\n"


def test_a_dry_run_shows_the_script_that_is_sent_and_changes_nothing(towline: Terminal, lab: Lab) -> None:
    before = lab.run_on("login1", ["sh", "-c", "ls /lustre/alice/towline/jobs 2>/dev/null"], user="alice").stdout
    words = ["--nodes", "2", "--gpus-per-node", "4", "--time", "10m", "--", "true"]
    plan = towline("run", "--dry-run", "--json", *words).json["plan"]
    assert lab.run_on("login1", ["sh", "-c", "ls /lustre/alice/towline/jobs"], user="alice").stdout == before
    job = towline.submit(*words)
    sent = lab.run_on("login1", ["cat", f"{towline.job(job)['directory']}/script/batch"], user="alice").stdout
    assert sent.replace(job, "ID") == plan["files"]["script/batch"].replace(plan["job_id"], "ID")
    assert "#SBATCH --time=00:10:00" in sent
    towline("cancel", job)


REFUSED: list[tuple[list[str], int, str]] = [
    (["--partition", "nosuch", "--", "true"], 65, "there are: batch"),
    (["--gpus-per-node", "9", "--", "true"], 65, "have 8"),
    (["--nodes", "5", "--", "true"], 65, "allows 4"),
    (["--time", "5h", "--", "true"], 65, "04:00:00"),
    (["--", ""], 65, "command is empty"),
    ([], 64, ""),
    (["--env", "=x", "--", "true"], 65, "environment variable"),
    (["--env", "A", "--", "true"], 64, ""),
    (["--env", "1A=x", "--", "true"], 65, "1A"),
    (["--mount", "/nosuch/place:/data", "--", "true"], 65, "/nosuch/place"),
    (["--image", "/lustre/images/nosuch.sqsh", "--", "true"], 65, "/lustre/images/nosuch.sqsh"),
    (["--image", "UPPER/case", "--", "true"], 65, "UPPER/case"),
    (["--image", "python.sqsh", "--", "true"], 65, "absolute path"),
    (["--account", "a\nb", "--", "true"], 65, "#SBATCH"),
    (["--name", "a\nb", "--", "true"], 65, "job name"),
    (["--partition", "batch\n#SBATCH --exclusive", "--", "true"], 65, "#SBATCH"),
    (["--comment", "a\nb", "--", "true"], 65, "one line"),
    (["--account", "nosuch", "--", "true"], 65, "no account of yours"),
    (["--qos", "nosuch", "--", "true"], 65, "there are: limited, long, normal"),
    (["--qos", "limited", "--gpus", "8", "--", "true"], 65, "8 GPUs are asked for and QOS limited"),
    (["--constraint", "nvme", "--", "true"], 65, "feature nvme"),
    (["--reservation", "nosuch", "--", "true"], 76, "reservation"),
    (["--sbatch", "wrap=true", "--", "true"], 65, "the batch script is Towline's"),
]


@pytest.mark.parametrize(("words", "code", "said"), REFUSED)
def test_bad_input_is_refused_with_the_reason_and_leaves_nothing(
    towline: Terminal, lab: Lab, words: list[str], code: int, said: str
) -> None:
    listing = ["sh", "-c", "ls /lustre/alice/towline/jobs; squeue -h -u alice -o %i"]
    before = set(lab.run_on("login1", listing, user="alice").stdout.split())
    done = towline("run", *words)
    assert done.code == code, done
    assert said in done.err
    assert "Traceback" not in done.err
    assert set(lab.run_on("login1", listing, user="alice").stdout.split()) <= before


def test_a_failing_check_is_told_with_every_other_one(towline: Terminal) -> None:
    done = towline("run", "--dry-run", "--json", "--nodes", "9", "--gpus-per-node", "9", "--", "true")
    assert done.code == 65
    plan: dict[str, Any] = done.json["plan"]
    assert {check["name"] for check in plan["checks"] if check["verdict"] == "fails"} == {"nodes", "gpus", "slurm"}


def test_why_a_job_waits_is_told(towline: Terminal) -> None:
    job = towline.submit("--nodes", "4", "--exclusive", "--time", "5m", "--", "sleep", "300")
    towline.until(job, lambda each: each["state"] == "running")
    waiting = towline.submit("--nodes", "4", "--exclusive", "--time", "5m", "--", "true")
    found = towline.until(waiting, lambda each: each["note"] != "")
    assert found["state"] == "pending"
    assert found["attempts"][-1]["reason"] in ("Resources", "Priority")
    assert "(" not in found["note"][:1]
    assert towline("cancel", job).code == 0
    assert towline("wait", waiting).code == 0
