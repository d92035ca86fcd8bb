"""Running the command line in this process, on a cluster in memory."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.unit.cli.fake_cluster import FakeCluster
from towline.cli import doors
from towline.cli.main import main


@dataclass(frozen=True)
class Ran:
    """How a command ended and what it wrote."""

    status: int
    stdout: str
    stderr: str

    @property
    def document(self) -> dict[str, Any]:
        """The only JSON object on stdout."""
        (line,) = self.stdout.splitlines()
        return json.loads(line)

    @property
    def documents(self) -> list[dict[str, Any]]:
        """The JSON lines on stdout."""
        return [json.loads(line) for line in self.stdout.splitlines()]


@pytest.fixture(autouse=True)
def directories(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Configuration and state of the test's own; the result is the state directory."""
    monkeypatch.setenv("TOWLINE_CONFIG_DIR", str(tmp_path / "config"))
    monkeypatch.setenv("TOWLINE_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.delenv("TOWLINE_CLUSTER", raising=False)
    return tmp_path / "state"


@pytest.fixture
def towline(capfdbinary: pytest.CaptureFixture[bytes]) -> Callable[..., Ran]:
    """Runs a command line."""

    def _towline(*args: str) -> Ran:
        status = main(list(args))
        written = capfdbinary.readouterr()
        return Ran(status, written.out.decode(errors="surrogateescape"), written.err.decode())

    return _towline


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> FakeCluster:
    """The cluster that every command finds."""
    fake = FakeCluster()
    monkeypatch.setattr(doors, "opener", fake.open)
    return fake
