"""Results that were brought into a project are no part of its code."""

from __future__ import annotations

import asyncio
import subprocess
from pathlib import Path

import pytest

from towline.engine.staging.trees import leave_out, working_tree


@pytest.mark.parametrize("with_git", [False, True])
def test_results_below_the_project_stay_out_of_its_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, with_git: bool
) -> None:
    monkeypatch.chdir(tmp_path)
    if with_git:
        subprocess.run(["git", "init", "-q"], check=True)
    Path("results/tune").mkdir(parents=True)
    for name in ("train.py", "results/tune/model.pt", "results/own.py"):
        Path(name).write_text("x")
    assert leave_out(Path("results/tune"))
    assert not leave_out(Path("results/tune")), "it is said once"
    assert asyncio.run(working_tree(tmp_path)).paths == ("results/own.py", "train.py")


def test_what_is_no_part_of_a_project_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "project").mkdir()
    (tmp_path / "home").mkdir()
    monkeypatch.chdir(tmp_path / "project")
    for folder in (tmp_path / "home", Path("../home"), Path("."), tmp_path):
        assert not leave_out(folder)
    assert list(tmp_path.rglob(".towlineignore")) == []
