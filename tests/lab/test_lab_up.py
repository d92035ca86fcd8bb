"""Bringing the lab up when it is up, and when it must not come up."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from towline.cli.lab import lab as command
from towline.lab import Lab, LabError, namespaces, network, process, profile
from towline.lab.guard import FOREIGN_CONFIGURATIONS
from towline.lab.layout import CPU_NODE, HOSTS
from towline.lab.process import until


def test_a_second_up_changes_nothing(lab: Lab) -> None:
    lab.up()
    before = [namespaces.holder(lab.paths, host) for host in HOSTS]
    said: list[str] = []
    assert lab.up(said.append) is False
    assert said == []
    assert [namespaces.holder(lab.paths, host) for host in HOSTS] == before


def test_the_command_says_that_the_lab_is_up_already(lab: Lab) -> None:
    done = CliRunner().invoke(command, ["up"])
    assert done.exit_code == 0
    assert "The lab is up already" in done.output


def test_status_as_json_names_every_part_and_node(lab: Lab) -> None:
    done = CliRunner().invoke(command, ["status", "--json"])
    found = json.loads(done.output)
    assert done.exit_code == 0
    assert found["up"] is True
    assert {part["name"] for part in found["parts"]} >= {"disk", "hosts", "database", "controller", "nodes", "logins"}
    assert found["nodes"]["node1"]


def test_a_profile_taken_away_is_written_again(lab: Lab) -> None:
    profile.path().unlink()
    assert lab.up() is True
    assert 'hosts = ["login1.lab", "login2.lab"]' in profile.path().read_text()
    assert profile.path().stat().st_mode & 0o777 == 0o600


def test_a_cut_cable_is_mended(lab: Lab) -> None:
    network.set_link(lab.paths, CPU_NODE, up=False)
    assert any("cpu1" in part.problem for part in lab.status().parts)
    assert lab.up() is True
    assert lab.status().is_up


@pytest.fixture
def foreign_slurm_conf() -> Iterator[Path]:
    path = FOREIGN_CONFIGURATIONS[-1]
    path.write_text("ClusterName=production\n")
    yield path
    path.unlink()


def test_up_refuses_next_to_a_slurm_conf_that_is_not_its_own(lab: Lab, foreign_slurm_conf: Path) -> None:
    before = profile.path().stat().st_mtime_ns
    with pytest.raises(LabError, match=str(foreign_slurm_conf)):
        lab.up()
    assert foreign_slurm_conf.read_text() == "ClusterName=production\n"
    assert profile.path().stat().st_mtime_ns == before


def test_up_refuses_next_to_a_slurmd_that_is_not_its_own(lab: Lab, tmp_path: Path) -> None:
    impostor = shutil.copy("/bin/sleep", tmp_path / "slurmd")
    with subprocess.Popen([impostor, "infinity"]) as foreign:
        try:
            with pytest.raises(LabError, match=f"slurmd is running .pid {foreign.pid}."):
                lab.up()
            assert foreign.poll() is None
        finally:
            foreign.kill()


def test_a_slurm_and_a_lab_in_a_container_are_on_another_machine(lab: Lab, tmp_path: Path) -> None:
    inside = shutil.copy("/bin/sleep", tmp_path / "slurmd")
    mark = {namespaces.MARK: f"{lab.paths.root}|node1|1"}
    with subprocess.Popen(["unshare", "--net", inside, "infinity"], env=mark) as container:
        try:
            until(lambda: process.name_of(container.pid) == "slurmd", 10, "the container's start")
            assert lab.up() is False
            assert container.pid not in namespaces.all_holders()
        finally:
            container.kill()


def test_up_refuses_next_to_another_lab(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOWLINE_LAB_DIR", "/var/lib/towline-lab-of-somebody-else")
    other = Lab.default()
    with pytest.raises(LabError, match=str(lab.paths.root)):
        other.up()
    assert not other.paths.root.exists()


def test_shell_runs_a_command_as_a_user_on_a_host(lab: Lab) -> None:
    done = lab.run_on("node2", ["sh", "-c", "hostname; id -un; exit 7"], user="alice")
    assert done.stdout.split() == ["node2", "alice"]
    assert done.returncode == 7


def test_a_wrong_host_or_log_name_is_answered_with_those_there_are(lab: Lab) -> None:
    with pytest.raises(LabError, match="login2"):
        lab.run_on("node9", ["true"])
    with pytest.raises(LabError, match="slurmctld"):
        lab.logs("nonsense")
    assert [path.name for path in lab.logs("controller")] == ["slurmctld.log"]


def test_hosts_keep_their_users_when_the_machine_replaces_its_own_user_list(lab: Lab) -> None:
    """Installing a package that adds a user does this; a file that is replaced loses what is mounted on it."""
    users = Path("/etc/passwd")
    fresh = users.with_name("passwd.towline-test")
    shutil.copy2(users, fresh)
    fresh.replace(users)
    for host in ("login1", "node1", "ctl"):
        assert lab.run_on(host, ["id", "-un"], user="alice", check=True).stdout == "alice\n"
