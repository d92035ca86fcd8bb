"""The working tree on the cluster: what a job finds of it, and what is sent of it again."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from tests.lab.login import on_login
from tests.lab.terminal import Terminal
from towline import Cluster, JobSpec
from towline.engine.events import Progress
from towline.lab import Lab


@pytest.fixture
def towline(lab: Lab, tmp_path: Path) -> Terminal:
    return Terminal(tmp_path / "state")


def git(folder: Path, *words: str) -> str:
    names = {f"GIT_{who}_{what}": "x@example.org" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    return subprocess.run(
        ["git", "-C", folder, *words], check=True, capture_output=True, text=True, env={**os.environ, **names}
    ).stdout.strip()


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A repository with a commit, a change, new files, ignored ones, and secrets."""
    made = tmp_path / "my code"
    (made / "pkg").mkdir(parents=True)
    (made / "pkg" / "a b\n.py").write_text("first\n")
    (made / "pkg" / "new").write_text("new\n")
    (made / "run.sh").write_text("#!/bin/sh\npwd; cat pkg/a*; cat link; ls -A; echo x >>run.sh\n")
    (made / "run.sh").chmod(0o755)
    (made / "link").symlink_to("pkg/new")
    (made / ".gitignore").write_text("*.ckpt\n")
    (made / ".env").write_text("TOKEN=1")
    (made / "big.ckpt").write_text("no code")
    git(made, "init", "-q")
    git(made, "add", "run.sh", "pkg")
    git(made, "commit", "-q", "-m", "first")
    return made


def test_a_job_starts_in_its_working_tree_and_cannot_write_there(lab: Lab, towline: Terminal, tree: Path) -> None:
    (tree / "pkg" / "new").write_text("changed\n")
    ran = towline("run", "--code", str(tree), "--", "./run.sh")
    assert ran.code != 0, "the code was written to"
    assert ran.out == "/code\nfirst\nchanged\n.gitignore\nlink\npkg\nrun.sh\n"
    assert "look like secrets: .env" in ran.err
    (job,) = towline("ps", "--all", "--json").json["jobs"]
    about = json.loads(on_login(lab, "cat", f"{job['directory']}/script/code.json").stdout)
    assert about["commit"] == git(tree, "rev-parse", "HEAD")
    assert about["dirty"]
    assert "+changed" in on_login(lab, "cat", f"{job['directory']}/script/code.diff").stdout


def test_of_a_tree_that_was_sent_before_only_what_changed_is_sent(
    lab: Lab, towline: Terminal, tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOWLINE_STATE_DIR", str(towline.state))
    for number in range(5000):
        (tree / "pkg" / f"{number}.py").write_text(f"{tree} {number}\n")
    sent: list[Progress] = []

    def bring(cluster: Cluster) -> tuple[str, int, int]:
        plan = cluster.plan(JobSpec(command=("true",), code=str(tree)))
        assert plan.code
        calls = cluster.calls
        sent.clear()
        cluster.send_code(plan.code, progress=sent.append)
        return plan.code.place, cluster.calls - calls, sent[-1].bytes_done if sent else 0

    with Cluster.open("lab") as cluster:
        first = bring(cluster)
        assert len({each.files_done for each in sent}) > 3
        assert sent[-1].files_done == sent[-1].files_total >= 5000
        (tree / "pkg" / "7.py").write_text("x" * 5000)
        (tree / "pkg" / "8.py").unlink()
        second = bring(cluster)
        assert second[1] == 1
        assert second[2] < 20_000 < 2_000_000 < first[2]
        assert bring(cluster)[1] == 1
    shown = on_login(lab, "sh", "-c", 'cd "$1" && wc -c <pkg/7.py; ls pkg | wc -l; stat -c %h pkg/9.py', "", second[0])
    assert shown.stdout.split() == ["5000", str(5000 + 2), "2"]
    # What the earlier snapshot holds has not changed.
    assert on_login(lab, "cat", f"{first[0]}/pkg/7.py").stdout == f"{tree} 7\n"


def test_a_snapshot_that_is_gone_is_sent_again(
    lab: Lab, towline: Terminal, tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOWLINE_STATE_DIR", str(towline.state))
    with Cluster.open("lab") as cluster:

        def bring() -> str:
            plan = cluster.plan(JobSpec(command=("true",), code=str(tree)))
            assert plan.code
            cluster.send_code(plan.code)
            return plan.code.place

        first = bring()
        for gone in (first, first.rpartition("/")[0]):  # one snapshot, and then all with their directory
            assert on_login(lab, "sh", "-c", 'chmod -R u+w "$1" && mv "$1" "$1.away$$"', "", gone).returncode == 0
            (tree / "pkg" / "new").write_text(f"after {gone}\n")
            assert on_login(lab, "cat", f"{bring()}/link").stdout == f"after {gone}\n"
            assert on_login(lab, "cat", f"{bring()}/run.sh").stdout == (tree / "run.sh").read_text()
