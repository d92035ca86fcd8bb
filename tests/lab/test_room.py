"""Room on the cluster: asked for before much is sent, and named with its quota where there is none."""

from __future__ import annotations

import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.lab.faulty import fault
from tests.lab.login import on_login
from tests.lab.terminal import Terminal
from towline import Cluster
from towline.engine.events import Progress
from towline.lab import Lab
from towline.lab.files import replace
from towline.models.errors import StagingFailed


@pytest.fixture
def towline(lab: Lab, tmp_path: Path) -> Terminal:
    return Terminal(tmp_path / "state")


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    made = tmp_path / "tree"
    made.mkdir()
    for number in range(30):
        (made / f"f{number}").write_bytes(os.urandom(100_000))
    return made


@contextmanager
def quota(lab: Lab, kib: int, files: int) -> Generator[None]:
    """The cluster tells of a quota that leaves so much."""
    command = lab.paths.runtime / "bin" / "quota"
    source = "$(df -P /lustre | awk 'END { print $1 }')"
    row = f"{source} 1000 0 {1000 + kib} 50 0 {50 + files}"
    replace(command, f'#!/bin/sh\necho "Disk quotas for user alice (uid 1):"\necho "{row}"\n', 0o755)
    try:
        yield
    finally:
        command.unlink()


def there(lab: Lab, path: str) -> list[str]:
    """What is below a place on the cluster."""
    return on_login(lab, "find", path, "-mindepth", "1").stdout.split()


def test_what_a_quota_leaves_no_room_for_is_not_sent(lab: Lab, towline: Terminal, tree: Path) -> None:
    root = "/lustre/alice/towline"
    place, code = f"{root}/data/{os.urandom(8).hex()}", there(lab, f"{root}/code")
    for kib, files, told in (
        (1000, 1000, "1000 KiB of 2.0 MiB used, and "),
        (9000, 9, "50 of 59 files used"),
    ):
        with quota(lab, kib, files):
            done = towline("push", str(tree), place)
            sent = towline("run", "--detach", "--code", str(tree), "--", "true")
        assert (done.code, sent.code) == (73, 73)
        assert told in done.err
        assert "the quota of user alice" in sent.err
        assert there(lab, place) == []
    assert there(lab, f"{root}/code") == code
    with quota(lab, 20, 5):
        plan = towline("plan", "--", "true")
    assert plan.code == 65
    assert "space" in plan.out
    assert "the quota of user alice" in plan.out
    with quota(lab, 9000, 100):
        assert towline("push", str(tree), place).code == 0
    on_login(lab, "rm", "-r", place)


@pytest.mark.parametrize("name", ["quota", "disk-full"])
def test_where_there_is_no_room_nothing_is_left_and_what_is_full_is_named(
    lab: Lab, towline: Terminal, tree: Path, name: str
) -> None:
    root = "/lustre/alice/towline"
    assert towline("push", str(tree / "f0")).code == 0  # the directories are there
    before = there(lab, root)
    with fault(lab, name):
        done = [
            towline("push", str(tree)),
            towline("run", "--detach", "--code", str(tree), "--", "true"),
            towline("run", "--detach", "--", "true"),
        ]
    told = "the quota of user alice on " if name == "quota" else " has 0 KiB free"
    assert [(each.code, told in each.err) for each in done] == [(73, True)] * 3, done
    assert there(lab, root) == before


def test_a_quota_that_ends_a_push_leaves_no_part(lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOWLINE_STATE_DIR", str(tmp_path / "state"))
    tree = tmp_path / "large"
    tree.mkdir()
    (tree / "large").write_bytes(os.urandom(70_000_000))
    place = f"/lustre/alice/towline/data/{os.urandom(8).hex()}"
    exceeded = False

    def told(progress: Progress) -> None:
        nonlocal exceeded
        if progress.bytes_done and not exceeded:
            exceeded = True
            lab.fault_on("quota")

    try:
        with Cluster.open("lab") as cluster, pytest.raises(StagingFailed) as failed:
            cluster.push(tree, place, progress=told)
    finally:
        lab.fault_off("quota")
    assert "Disk quota exceeded; the quota of user alice" in failed.value.why
    assert there(lab, place) == []
