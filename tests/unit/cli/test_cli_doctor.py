"""`towline doctor` in this process, on the machine itself: a local transport without Slurm."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.unit.cli.conftest import Ran

Towline = Callable[..., Ran]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A root below a directory of the test's own, in the profile `here`."""
    (tmp_path / "config").mkdir()
    text = f'[clusters.here]\ntransport = "local"\nroot = "{tmp_path}/root"\n'
    (tmp_path / "config" / "config.toml").write_text(text)
    (tmp_path / "root").mkdir(mode=0o700)
    return tmp_path / "root"


@pytest.mark.usefixtures("root")
def test_a_machine_without_slurm_is_told_with_the_fix_and_its_kind(
    towline: Towline, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOWLINE_SETUP", "command() { return 1; }")
    ran = towline("doctor", "--json")
    document = ran.document
    checks = {each["id"]: each for each in document["doctor"]["checks"]}
    assert checks["root"]["verdict"] == "ok"
    assert set(checks["root"]) == {"id", "host", "verdict", "evidence", "fix", "kind", "can_be_applied"}
    assert document["exit"] == {"code": ran.status, "whose": "towline"}
    assert checks["slurm"]["verdict"] == "fails"


def test_a_safe_fix_is_applied_only_when_told_to(towline: Towline, root: Path) -> None:
    root.chmod(0o777)
    shown = towline("doctor")
    assert "other users may write" in shown.stdout
    assert f"fix: On the cluster: chmod 700 {root}" in shown.stdout
    assert "give --yes" in towline("doctor", "--fix").stderr
    assert root.stat().st_mode & 0o777 == 0o777
    mended = towline("doctor", "--fix", "--yes", "--json").document
    assert root.stat().st_mode & 0o777 == 0o700
    assert mended["doctor"]["mended"] == [f"make private: {root} on the cluster"]


def test_a_wait_that_is_no_time_is_a_usage_error(towline: Towline) -> None:
    ran = towline("doctor", "--deep", "--wait", "soon")
    assert ran.status == 64
    assert "--wait" in ran.stderr
