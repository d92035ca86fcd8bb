from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.unit.cli.conftest import Ran
from tests.unit.cli.fake_cluster import FakeCluster

Towline = Callable[..., Ran]
PROFILE = '[clusters.mine]\nhosts = "login"\nroot = "/lustre/me"\nmounts = ["/data:/d:ro"]\n'


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory; the profile `mine` is configured."""
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "config.toml").write_text(PROFILE)
    (tmp_path / "project").mkdir()
    monkeypatch.chdir(tmp_path / "project")
    return tmp_path / "project"


def test_what_is_configured_is_shown_with_its_origin(
    towline: Towline, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOWLINE_QOS", "long")
    shown = towline("config", "show")
    assert "qos" in shown.stdout
    assert "poll_interval" not in shown.stdout
    with_origin = towline("config", "show", "--origin")
    assert "TOWLINE_QOS in the environment" in with_origin.stdout
    assert "/data:/d:ro" in with_origin.stdout
    found = {each["name"]: each for each in towline("config", "show", "--json").document["config"]["settings"]}
    assert found["hosts"]["value"] == ["login"]
    assert found["hosts"]["origin"] == str(project.parent / "config" / "config.toml")
    assert found["poll_interval"]["source"] == "default"


@pytest.mark.usefixtures("project")
def test_the_directory_is_printed(towline: Towline, tmp_path: Path) -> None:
    assert towline("config", "path").stdout == f"{tmp_path / 'config'}\n"


def test_run_takes_the_projects_defaults_once_they_are_trusted(
    towline: Towline, project: Path, cluster: FakeCluster
) -> None:
    (project / "towline.toml").write_text('image = "ubuntu"\nshell = "sleep 1"\n')
    refused = towline("run", "--dry-run", "--nodes", "2")
    assert refused.status == 78
    assert "towline trust" in refused.stderr
    assert "shell" in towline("trust").stdout
    assert towline("run", "--dry-run", "--nodes", "2").status == 0
    assert (cluster.specs[-1].shell, cluster.specs[-1].image, cluster.specs[-1].resources.nodes) == (
        "sleep 1",
        "ubuntu",
        2,
    )
    towline("trust", "--remove")
    assert towline("run", "--dry-run").status == 78


def test_trust_is_for_the_nearest_file_above_as_jobs_are(
    towline: Towline, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (project / "towline.toml").write_text('shell = "sleep 1"\n')
    (project / "deep" / "er").mkdir(parents=True)
    monkeypatch.chdir(project / "deep" / "er")
    assert f"Trusted: {project}/towline.toml." in towline("trust").stdout
    assert "No longer" in towline("trust", "--remove").stdout
