"""The skill for agents: every command in it runs on the lab as it stands, in its order."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.pages import ROOT, commands_of
from tests.lab.clinic import Clinic
from tests.lab.terminal import COMMAND, PATIENCE, Done
from towline.lab import Lab
from towline.lab.layout import ALICE

SKILL = ROOT / "skills" / "run-on-slurm"


@pytest.fixture
def clinic(lab: Lab, tmp_path: Path) -> Iterator[Clinic]:
    found = Clinic(lab, tmp_path)
    yield found
    found.end()


class Agent:
    """Follows a page: what a command printed fills the words HASH and JOB of later ones."""

    def __init__(self, folder: Path, environment: dict[str, str], known: dict[str, str]) -> None:
        self.folder = folder
        self.environment = {**os.environ, **environment}
        self.known = known

    def __call__(self, line: str) -> Done:
        words = [self.known.get(word, word) for word in shlex.split(line)]
        assert words[0] == "towline"
        done = subprocess.run(
            [*COMMAND, *words[1:]],
            cwd=self.folder,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
        if done.returncode == 0 and "--json" in words:
            self._learn([json.loads(text) for text in done.stdout.splitlines()])
        return Done(done.returncode, done.stdout, done.stderr)

    def _learn(self, documents: list[dict[str, dict[str, str]]]) -> None:
        for document in documents:
            if "review" in document:
                self.known["HASH"] = document["review"]["hash"]
            if "job" in document:
                self.known["JOB"] = document["job"]["id"]


def test_a_job_is_run_by_the_skill_alone(lab: Lab, tmp_path: Path) -> None:
    folder = tmp_path / "project"
    (folder / "data").mkdir(parents=True)
    (folder / "data" / "one").write_text("1")
    (folder / "train.py").write_text("print(1)\n")
    agent = Agent(folder, {"TOWLINE_STATE_DIR": str(tmp_path / "state"), "TOWLINE_CLUSTER": "lab"}, {})
    said = {line: agent(line) for line in commands_of(SKILL / "SKILL.md")}
    assert {line: done for line, done in said.items() if done.code} == {}
    (watched,) = [done for line, done in said.items() if line.startswith("towline watch")]
    assert watched.lines[-1]["job"]["state"] == "succeeded"
    (logs,) = [done for line, done in said.items() if line.startswith("towline logs")]
    assert logs.out.startswith("GPU 0:")
    (pulled,) = [done for line, done in said.items() if "--pull" in line]
    assert pulled.json["results"][0]["pulled"]["way"] == "the job left nothing in $TOWLINE_RESULTS_DIR"


def test_more_about_jobs(lab: Lab, tmp_path: Path) -> None:
    (tmp_path / "job.yaml").write_text("command: [true]\nimage: /lustre/images/busybox.sqsh\n")
    agent = Agent(tmp_path, {"TOWLINE_STATE_DIR": str(tmp_path / "state"), "TOWLINE_CLUSTER": "lab"}, {})
    said = {line: agent(line) for line in commands_of(SKILL / "references" / "jobs.md")}
    assert {line: done for line, done in said.items() if done.code} == {}


def test_a_cluster_is_described_for_the_first_time(clinic: Clinic) -> None:
    known = {
        "login1.example.org,login2.example.org": "login1.lab,login2.lab",
        "NAME": ALICE.name,
        "~/.ssh/id_ed25519": str(clinic.lab.paths.key(ALICE)),
        "gpu": "batch",
    }
    home = clinic.folder / "home"
    home.mkdir()
    own = {"TOWLINE_CONFIG_DIR": str(clinic.folder / "config"), "HOME": str(home), "TOWLINE_CLUSTER": ""}
    agent = Agent(clinic.folder, own, known)
    setup, check = commands_of(SKILL / "references" / "first-time.md")
    known_hosts = f" --known-hosts {clinic.folder / 'known'}"
    refused = agent(setup + known_hosts)
    assert refused.code == 77
    assert "--accept-host-keys" in refused.err
    done = agent(f"{setup}{known_hosts} --accept-host-keys")
    assert done.code == 0
    assert "The profile names no image: each job needs --image" in done.out
    assert check.startswith("towline registry check nvcr.io/")
    checked = agent(check.replace("nvcr.io/nvidia/cuda:12.4.1-base-ubuntu22.04", "registry.lab:5000/python:3.11"))
    assert checked.code == 0, checked
