"""The scripts as texts, and the command lines."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.slurm.stubs import Slurm
from towline.slurm import commands
from towline.slurm.calls import PollTarget, cancel_call, poll_call
from towline.slurm.parse import SlurmId
from towline.slurm.scripts import ScriptName, script
from towline.slurm.submission import ScriptExit

NAMES: tuple[ScriptName, ...] = get_args(ScriptName)


@pytest.mark.parametrize("name", NAMES)
def test_a_script_is_one_sound_text(name: ScriptName) -> None:
    text = script(name)
    assert text.startswith("#!/bin/sh\n")
    assert not re.search(r"^\. \./\w+\.sh", text, re.MULTILINE)
    for shell in ("sh", "dash"):
        checked = subprocess.run(
            ["shellcheck", f"--shell={shell}", "-"], input=text, capture_output=True, text=True, check=False
        )
        assert checked.returncode == 0, checked.stdout


def test_every_exit_code_of_the_scripts_has_a_name() -> None:
    used = {int(code) for name in NAMES for code in re.findall(r"\bexit (\d+)", script(name))}
    assert used - {0} <= set(ScriptExit)
    assert set(ScriptExit) - {ScriptExit.OK} <= used


def test_command_lines() -> None:
    assert commands.sbatch("/j/script/batch") == ("sbatch", "--parsable", "/j/script/batch")
    assert commands.scancel(["1", "2"], "gpu") == ("scancel", "--clusters=gpu", "1", "2")
    assert commands.sinfo()[0] == "sinfo"
    assert commands.show_config() == ("scontrol", "show", "config")
    assert commands.show_partitions()[-1] == "partition"


def test_the_scripts_run_the_same_command_lines(tmp_path: Path) -> None:
    slurm = Slurm(tmp_path)
    targets = [
        PollTarget("a", 1, SlurmId("1", "gpu")),
        PollTarget("b", 1, SlurmId("2")),
        PollTarget("c", 1, SlurmId("3")),
    ]
    slurm.run(poll_call("/nowhere", targets), tmp_path / "poll")
    slurm.run(cancel_call("/nowhere", "", [SlurmId("1", "gpu"), SlurmId("2")]), tmp_path / "cancel")
    for command in (commands.squeue, commands.sacct):
        me = str(os.getuid())
        asked = [command(["1"], "gpu", me), command(["2", "3"], user=me)]
        calls = [call for call in slurm.calls(asked[0][0]) if "%F|%Z" not in call]
        assert sorted(calls) == sorted(" ".join(words[1:]) for words in asked)
    assert set(slurm.calls("scancel")) == {" ".join(commands.scancel(["1"], "gpu")[1:]), "2"}


@given(st.lists(st.integers(1, 10**9).map(str)))
def test_chunks_hold_every_id_once_and_fit_a_line(ids: list[str]) -> None:
    lists = commands.chunks(ids)
    assert [job_id for chunk in lists for job_id in chunk] == list(dict.fromkeys(ids))
    assert all(0 < len(chunk) <= 500 for chunk in lists)
    assert all(len(",".join(chunk)) < 32_000 for chunk in lists)


def test_long_ids_make_shorter_chunks() -> None:
    lists = commands.chunks(f"{number}_{'1' * 100}" for number in range(1000))
    assert all(len(",".join(chunk)) <= 32_000 for chunk in lists)
    assert sum(map(len, lists)) == 1000
