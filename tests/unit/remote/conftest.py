"""Shells to run the bootstrap with, and a place of its own for what it leaves behind."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.remote.lifeline import LifeLine

SHELLS = [path for name in ("dash", "bash", "busybox") if (path := shutil.which(name))]
TOOLS = ("cat", "cut", "head", "mktemp", "rm", "sleep", "tar")


@pytest.fixture(params=SHELLS)
def shell(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A POSIX shell by its path."""
    path = str(request.param)
    if not path.endswith("busybox"):
        return path
    applet = tmp_path / "sh"
    applet.symlink_to(path)
    return str(applet)


@pytest.fixture
def scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where `mktemp -d` makes its directories."""
    folder = tmp_path / "scratch"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    return folder


@pytest.fixture
def lifeline(tmp_path: Path) -> Iterator[LifeLine]:
    line = LifeLine(tmp_path)
    yield line
    line.close()


@pytest.fixture
def bare_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A PATH with what the bootstrap needs and no `setsid`."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for tool in TOOLS:
        found = shutil.which(tool)
        assert found
        (folder / tool).symlink_to(found)
    monkeypatch.setenv("PATH", str(folder))
