"""The Python examples of the documentation run on the lab as they stand."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import towline
from harness.lab import lab_environment
from tests.docs.pages import Block, blocks


@pytest.mark.parametrize("block", blocks("python"), ids=str)
def test_examples_use_public_names_only(block: Block) -> None:
    used = [node for node in ast.walk(ast.parse(block.text)) if isinstance(node, ast.ImportFrom)]
    names = [alias.name for node in used if (node.module or "").split(".")[0] == "towline" for alias in node.names]
    assert [name for name in names if name not in towline.__all__] == []
    assert [node.module for node in used if (node.module or "").startswith("towline.")] == []


@pytest.mark.lab
@pytest.mark.parametrize("block", blocks("python"), ids=str)
def test_examples_run(block: Block, tmp_path: Path) -> None:
    with lab_environment(tmp_path / "state") as env:
        done = subprocess.run(
            [sys.executable, "-W", "error", "-c", block.text],
            cwd=tmp_path,
            env=env,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.strip()
