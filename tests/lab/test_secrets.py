"""Where the value of a secret is while a job runs, and where it is not."""

from __future__ import annotations

import hashlib
import json
import secrets
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.lab.terminal import Terminal
from towline.lab import Lab

CORE = f"sentinel-{secrets.token_hex(8)}"
VALUE = f"'{CORE}'\n\"$HOME\" `id` \\ é日 \x01%s\n"
LARGE = CORE + "x" * (64 * 1024 - len(CORE))
SHOW = """
printf %s "$SENTINEL" | sha256sum | cut -c 1-64 >"$TOWLINE_RESULTS_DIR/sum.$NODE_RANK"
printf %s "$LARGE" | wc -c >"$TOWLINE_RESULTS_DIR/size.$NODE_RANK"
until [ -e "$TOWLINE_RESULTS_DIR/go" ]; do sleep 0.2; done
"""


@pytest.fixture
def towline(lab: Lab, tmp_path: Path) -> Iterator[Terminal]:
    terminal = Terminal(tmp_path / "state", {"SENTINEL": VALUE, "LARGE": LARGE})
    yield terminal
    for job in terminal("ps", "--json").json["jobs"]:
        terminal("cancel", job["id"])


class Here:
    """One job's directory as this machine sees it."""

    def __init__(self, lab: Lab, directory: str) -> None:
        self.path = lab.paths.lustre / directory.removeprefix("/lustre/")
        self.values = self.path / "secrets"

    def until(self, condition: Callable[[], bool]) -> None:
        deadline = time.monotonic() + 120
        while not condition():
            assert time.monotonic() < deadline
            time.sleep(0.1)


def holding(*places: Path) -> list[str]:
    """The regular files at or below these places that have the value in them."""
    files = [path for place in places for path in (place.rglob("*") if place.is_dir() else [place])]
    return [str(path) for path in files if has_value(path)]


def has_value(path: Path) -> bool:
    try:
        return path.is_file() and CORE.encode() in path.read_bytes()
    except FileNotFoundError:  # the daemons' own files come and go
        return False


def processes(kind: str) -> dict[str, str]:
    """Pid → command name of every process of this machine, the lab's hosts among them, that has the value."""
    found: dict[str, str] = {}
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if CORE.encode() in (process / kind).read_bytes():
                found[process.name] = (process / "comm").read_text().strip()
        except OSError:
            continue
    return found


def test_a_value_is_in_the_container_and_in_one_private_file_and_nowhere_else(
    towline: Terminal, lab: Lab, tmp_path: Path
) -> None:
    options = ("--secret", "SENTINEL", "--secret", "LARGE=env:LARGE")
    dry = towline("run", "--dry-run", "--json", *options, "--shell", SHOW)
    submitted = towline("run", "--detach", "--json", "--nodes", "2", *options, "--shell", SHOW)
    assert submitted.code == 0, submitted
    job = submitted.json["job"]
    here = Here(lab, job["directory"])
    here.until(lambda: len(list((here.path / "results").glob("size.*"))) == 2)
    running = towline("status", "--json", job["id"])
    slurm_id = running.json["jobs"][0]["slurm_ids"][0]

    for node in ("0", "1"):
        assert (here.path / "results" / f"sum.{node}").read_text().strip() == hashlib.sha256(VALUE.encode()).hexdigest()
        assert (here.path / "results" / f"size.{node}").read_text().strip() == str(len(LARGE))
    assert holding(here.path) == [str(here.values)]
    assert here.values.stat().st_mode & 0o777 == 0o600
    assert json.loads((here.path / "job.json").read_text())["spec"]["secrets"] == ["SENTINEL", "LARGE"]

    assert CORE not in "".join(done.out + done.err for done in (dry, submitted, running))
    assert holding(tmp_path, lab.paths.root / "log", lab.paths.root / "state", lab.paths.root / "hosts") == []
    for command in (
        ["scontrol", "show", "job", "--details", slurm_id],
        ["scontrol", "write", "batch_script", slurm_id, "-"],
        ["sacct", "--batch-script", "--jobs", slurm_id],
        ["sacct", "--env-vars", "--jobs", slurm_id],
    ):
        shown = lab.run_on("login1", command, user="alice", check=True).stdout
        assert "TOWLINE_JOB_ID" in shown or "JobId=" in shown or "SLURM" in shown, command
        assert CORE not in shown
    for node in ("node1", "node2"):
        assert CORE not in lab.run_on(node, ["ps", "eaxwww"], user="bob", check=True).stdout
        assert lab.run_on(node, ["grep", "-rls", CORE, "/tmp", "/run", "/var/log", "/var/tmp"]).stdout == ""
    for login in ("login1", "login2"):
        assert lab.run_on(login, ["grep", "-rls", CORE, "/tmp", "/run", "/home"]).stdout == ""
    assert processes("cmdline") == {}
    assert set(processes("environ").values()) == {"sh", "sleep"}

    (here.path / "results" / "go").touch()
    assert towline("wait", job["id"]).code == 0
    assert not here.values.exists()
    assert holding(lab.paths.lustre / "alice", tmp_path) == []
    assert processes("environ") == {}


def test_a_job_that_cannot_take_its_secrets_away_itself_loses_them_all_the_same(towline: Terminal, lab: Lab) -> None:
    """Cancelled before it starts; ended by Slurm, with a reason the job does not know."""
    whole = ("--secret", "SENTINEL", "--nodes", "4", "--exclusive")
    running = towline.submit(*whole, "--", "sleep", "300")
    slurm_id = towline.until(running, lambda each: each["state"] == "running")["slurm_ids"][0]
    waiting = towline.submit(*whole, "--", "true")
    found = {job: Here(lab, towline.job(job)["directory"]) for job in (waiting, running)}
    assert all(here.values.exists() for here in found.values())
    assert towline("cancel", waiting).code == 0
    assert not found[waiting].values.exists()
    lab.run_on("login1", ["scancel", slurm_id], user="alice", check=True)
    towline.until(running, lambda each: each["ended"])
    assert not found[running].values.exists()
