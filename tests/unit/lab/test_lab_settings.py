"""Where the lab may live, what it needs, and Slurm's configuration as it is rendered."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from towline.lab import LabError, packages, process, slurmconf
from towline.lab.layout import NODES, Layout, find_host


@pytest.mark.parametrize("folder", ["/tmp/lab", "/run/lab", "/home/carol/lab", "/root/lab", "/lustre/lab", "/"])
def test_a_folder_that_hosts_would_not_see_is_refused(monkeypatch: pytest.MonkeyPatch, folder: str) -> None:
    monkeypatch.setenv("TOWLINE_LAB_DIR", folder)
    with pytest.raises(LabError, match="TOWLINE_LAB_DIR"):
        Layout.from_environment()


def test_the_folder_and_the_disk_can_be_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TOWLINE_LAB_DIR", raising=False)
    monkeypatch.delenv("TOWLINE_LAB_DISK_GIB", raising=False)
    assert Layout.from_environment() == Layout(Path("/var/lib/towline-lab"), 8)
    monkeypatch.setenv("TOWLINE_LAB_DIR", "/srv/lab")
    monkeypatch.setenv("TOWLINE_LAB_DISK_GIB", "2")
    assert Layout.from_environment() == Layout(Path("/srv/lab"), 2)


@pytest.mark.parametrize("size", ["0", "-1", "8G", "1.5", "many"])
def test_a_disk_size_that_is_no_number_of_gib_is_refused(monkeypatch: pytest.MonkeyPatch, size: str) -> None:
    monkeypatch.setenv("TOWLINE_LAB_DISK_GIB", size)
    with pytest.raises(LabError, match="TOWLINE_LAB_DISK_GIB"):
        Layout.from_environment()


@pytest.mark.parametrize(("name", "expected"), [("node2", "node2"), ("login1.lab", "login1"), ("registry.lab", "ctl")])
def test_a_host_is_found_by_its_name_and_aliases(name: str, expected: str) -> None:
    assert find_host(name).name == expected


def test_missing_packages_are_named_with_the_command_that_installs_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "PATH", "/nonexistent")
    with pytest.raises(LabError) as raised:
        packages.require()
    assert "apt-get install --yes --no-install-recommends slurmctld slurmd " in raised.value.fix
    assert "towline lab up --install" in raised.value.fix


def rendered(tmp_path: Path, *, cgroup_v1: bool = True, version: tuple[int, int] = (22, 5)) -> dict[str, str]:
    return slurmconf.render(Layout(tmp_path), cgroup_v1=cgroup_v1, version=version)


def values(text: str) -> dict[str, str]:
    plain = [line for line in text.splitlines() if re.match(r"\w+=", line) and " " not in line]
    return dict(line.split("=", 1) for line in plain)


def test_slurm_conf_describes_every_node_with_typed_gpus(tmp_path: Path) -> None:
    files = rendered(tmp_path)
    nodes = dict(re.findall(r"^NodeName=(\S+) NodeAddr=(\S+)", files["slurm.conf"], re.MULTILINE))
    assert nodes == {node.name: node.address for node in NODES}
    with_gpus = re.findall(r"^NodeName=(\S+) .*Gres=gpu:h100:8", files["slurm.conf"], re.MULTILINE)
    assert with_gpus == re.findall(r"^NodeName=(\S+) .*File=/dev/fakegpu\[0-7\]$", files["gres.conf"], re.MULTILINE)
    assert with_gpus == ["node1", "node2", "node3", "node4", "cloud1"]


def test_slurm_conf_has_the_partitions_that_tests_need(tmp_path: Path) -> None:
    text = rendered(tmp_path)["slurm.conf"]
    partitions = dict(re.findall(r"^PartitionName=(\S+) .*MaxTime=(\S+)", text, re.MULTILINE))
    assert partitions == {
        "batch": "04:00:00",
        "short": "00:05:00",
        "interactive": "02:00:00",
        "cpu": "04:00:00",
        "low": "1-00:00:00",
        "low_requeue": "1-00:00:00",
        "urgent": "04:00:00",
        "cloud": "04:00:00",
    }
    assert "PartitionName=batch Default=YES" in text


@pytest.mark.parametrize(
    ("cgroup_v1", "tracking", "plugin"),
    [(True, "proctrack/cgroup", "task/cgroup"), (False, "proctrack/linuxproc", "task/none")],
)
def test_jobs_are_confined_where_the_machine_can(tmp_path: Path, cgroup_v1: bool, tracking: str, plugin: str) -> None:
    files = rendered(tmp_path, cgroup_v1=cgroup_v1)
    settings = values(files["slurm.conf"])
    assert (settings["ProctrackType"], settings["TaskPlugin"]) == (tracking, plugin)
    assert ("ConstrainRAMSpace=yes" in files["cgroup.conf"]) is cgroup_v1


def test_paths_follow_the_folder(tmp_path: Path) -> None:
    files = rendered(tmp_path)
    assert values(files["slurm.conf"])["StateSaveLocation"] == f"{tmp_path}/state/slurmctld"
    assert f"HostKey {tmp_path}/keys/host-login2\n" in files["sshd-login2.conf"]


@pytest.mark.parametrize(("version", "says_so"), [((22, 5), False), ((23, 11), True)])
def test_the_fallback_for_no_control_groups_fits_slurms_version(
    tmp_path: Path, version: tuple[int, int], says_so: bool
) -> None:
    text = rendered(tmp_path, cgroup_v1=False, version=version)["cgroup.conf"]
    assert ("CgroupPlugin=disabled" in text) is says_so


def test_a_process_that_ended_and_waits_to_be_reaped_is_in_no_namespace() -> None:
    child = os.fork()
    if child == 0:
        os._exit(0)
    os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
    assert process.namespace(child, "pid") == 0
    os.waitpid(child, 0)
    assert process.namespace(os.getpid(), "pid") != 0


def test_the_end_of_a_log_is_shown_and_a_missing_one_is_empty(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("".join(f"line {n}\n" for n in range(100_000)))
    assert process.tail(log, 2) == "line 99998\nline 99999"
    assert process.tail(tmp_path / "none") == ""
