"""What the lab survives, and that nothing stays when it goes. In the last file, since the lab goes down here.

Every test leaves the lab up again; the session's `lab` fixture then leaves it as it was found.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from towline.lab import Lab, LabError, controller, kernel, namespaces, process, profile, slurmconf
from towline.lab.layout import CLOUD_NODE, CTL, FAKE_GPUS, GPU_NODES, SWITCH, Host

SEED = int(os.environ.get("TOWLINE_LAB_SEED", "1"))


@pytest.fixture(autouse=True)
def up_again(lab: Lab) -> Iterator[None]:
    yield
    lab.up()


def assert_works(lab: Lab) -> None:
    """Four nodes run a job for a user of a login host."""
    done = lab.run_on("login1", ["timeout", "60", "srun", "-N4", "hostname"], user="alice", timeout=90)
    assert sorted(done.stdout.split()) == [node.name for node in GPU_NODES], done.stderr


def lab_processes(lab: Lab) -> list[int]:
    inside = {process.namespace(pid, "pid") for pid in namespaces.all_holders()}
    return [pid for pid in process.pids() if process.namespace(pid, "pid") in inside]


def loop_files() -> list[str]:
    listed = subprocess.run(["losetup", "-n", "-O", "BACK-FILE"], capture_output=True, text=True, check=True)
    return listed.stdout.splitlines()


def machine(lab: Lab) -> dict[str, object]:
    """Everything of this machine that a lab could leave something in."""
    own = {kind: process.namespace(os.getpid(), kind) for kind in ("pid", "net", "mnt", "uts", "ipc")}
    spaces = {(kind, process.namespace(pid, kind)) for pid in process.pids() for kind in own}
    return {
        "mounts": sorted(Path("/proc/self/mounts").read_text().splitlines()),
        "namespaces": {found for found in spaces if found[1]},
        "loop devices": [path for path in loop_files() if path.startswith(str(lab.paths.root))],
        "network": subprocess.run(["ip", "-br", "link"], capture_output=True, text=True).stdout,
        "hosts": Path("/etc/hosts").read_bytes(),
        "control groups": sorted(Path("/sys/fs/cgroup").glob("*/slurm*")),
        "devices": [path for path in FAKE_GPUS if path.exists()],
        "mount point": Path("/lustre").exists(),
        "holders": namespaces.all_holders(),
        "profile": profile.path().exists(),
    }


@pytest.fixture
def machine_without(lab: Lab) -> dict[str, object]:
    """The machine as it is with the lab down."""
    lab.down()
    return machine(lab)


def test_down_leaves_nothing_and_twice_is_no_error(lab: Lab, machine_without: dict[str, object]) -> None:
    assert {part.name for part in lab.status().parts if part.problem} >= {"disk", "hosts", "controller", "profile"}
    assert machine_without["holders"] == {}
    assert machine_without["control groups"] == []
    assert machine_without["devices"] == []
    assert machine_without["profile"] is False
    assert "login1" not in str(machine_without["hosts"])
    lab.up()
    job = ["sbatch", "--parsable", "--output=/dev/null", "--wrap", "sleep 600"]
    number = lab.run_on("login1", job, user="alice", check=True).stdout.strip()
    suspend = f"until scontrol suspend {number}; do sleep 0.2; done"
    lab.run_on("ctl", ["sh", "-c", suspend], check=True, timeout=60)  # frozen, it does not die by itself
    during = machine(lab)
    assert during != machine_without
    lab.down()
    assert machine(lab) == machine_without
    lab.down()
    assert machine(lab) == machine_without


def test_what_was_recorded_is_there_after_down_and_up(lab: Lab) -> None:
    job_id = 'echo kept >/lustre/alice/note && srun sh -c "echo \\$SLURM_JOB_ID"'
    job = lab.run_on("login1", ["sh", "-c", job_id], user="alice", check=True).stdout.strip()
    lab.down()
    lab.up()
    query = ["sh", "-c", f"cat /lustre/alice/note && rm /lustre/alice/note && sacct -n -P -X -j {job} -o state"]
    assert lab.run_on("login1", query, user="alice").stdout.split() == ["kept", "COMPLETED"]
    following = lab.run_on("login1", ["sh", "-c", job_id], user="alice", check=True).stdout
    assert int(following) > int(job)


@pytest.mark.parametrize("round_", range(4))
def test_up_mends_what_was_killed_at_random(lab: Lab, round_: int) -> None:
    chance = random.Random(SEED * 100 + round_)
    candidates = lab_processes(lab)
    victims = chance.sample(candidates, k=min(len(candidates), chance.randint(1, 6)))
    names = [process.name_of(pid) for pid in victims]
    process.kill(victims)
    lab.up()
    assert lab.status().is_up, names
    assert_works(lab)


@pytest.mark.parametrize("host", [SWITCH, CTL, GPU_NODES[0]], ids=lambda host: host.name)
def test_up_mends_a_host_that_lost_power(lab: Lab, host: Host) -> None:
    process.kill([namespaces.require(lab.paths, host)])
    lab.up()
    assert_works(lab)


def test_up_mends_a_cloud_node_that_lost_power_while_it_was_on(lab: Lab) -> None:
    on_it = ["timeout", "90", "srun", "-p", "cloud", "hostname"]
    assert lab.run_on("login1", on_it, user="alice", timeout=120).stdout == "cloud1\n"
    process.kill([namespaces.require(lab.paths, CLOUD_NODE)])
    lab.up()
    assert lab.run_on("login1", on_it, user="alice", timeout=120).stdout == "cloud1\n"


def test_up_mends_a_cloud_node_that_never_came(lab: Lab) -> None:
    fault = lab.paths.state / "faults" / f"noboot.{CLOUD_NODE.name}"
    controller.update_node(lab.paths, CLOUD_NODE.name, "power_down_force")
    process.until(lambda: lab.status().nodes[CLOUD_NODE.name] == "idle~", 60, "the node's suspension")
    fault.touch()
    job = ["sbatch", "-J", "never-comes", "-p", "cloud", "--output=/dev/null", "--wrap", "true"]
    lab.run_on("login1", job, user="alice", check=True)
    process.until(lambda: lab.status().nodes[CLOUD_NODE.name].startswith("down"), 60, "the failed boot")
    lab.run_on("login1", ["scancel", "--name=never-comes"], user="alice", check=True)
    fault.unlink()
    lab.up()
    on_it = ["timeout", "90", "srun", "-p", "cloud", "hostname"]
    assert lab.run_on("login1", on_it, user="alice", timeout=120).stdout == "cloud1\n"


def test_up_mends_a_lab_of_which_every_process_was_killed(lab: Lab) -> None:
    process.kill(list(namespaces.all_holders()))
    assert lab_processes(lab) == []
    lab.up()
    assert_works(lab)


@pytest.mark.parametrize("after_part", ["disk", "hosts", "database", "controller"])
def test_an_up_that_is_killed_is_taken_up_by_the_next(lab: Lab, after_part: str) -> None:
    lab.down()
    code = (
        "import os, signal, sys\n"
        "from towline.lab import Lab\n"
        f"die = lambda line: line.startswith({after_part!r}) and os.kill(os.getpid(), signal.SIGKILL)\n"
        "Lab.default().up(die)\n"
    )
    killed = subprocess.run([sys.executable, "-c", code], check=False)
    assert killed.returncode == -signal.SIGKILL
    lab.up()
    assert_works(lab)


def test_two_ups_at_once_do_the_work_once(lab: Lab) -> None:
    lab.down()
    said: list[str] = []
    results: list[bool] = []
    ups = [threading.Thread(target=lambda: results.append(lab.up(said.append))) for _ in range(2)]
    for up in ups:
        up.start()
    for up in ups:
        up.join()
    assert sorted(results) == [False, True]
    assert len([line for line in said if line.startswith("hosts up")]) == 1


def test_a_half_made_database_is_made_again(lab: Lab) -> None:
    lab.down()
    for name in ("lab-complete", "ibdata1"):
        (lab.paths.state / "mysql" / name).unlink()
    lab.up()
    assert_works(lab)


def test_a_part_that_does_not_start_is_named_with_the_end_of_its_log(lab: Lab) -> None:
    lab.down()
    data = lab.paths.state / "mysql"
    (data / "ibdata1").write_bytes(b"not a database")
    with pytest.raises(LabError, match="`database` did not start") as raised:
        lab.up()
    assert "ibdata1" in raised.value.why
    (data / "lab-complete").unlink()


def test_jobs_outlast_a_changed_configuration(lab: Lab) -> None:
    pipe = "/lustre/alice/go-on"
    script = f"mkfifo {pipe} && srun -J outlast cat {pipe}"
    lab.run_on("login1", ["rm", "-f", pipe], user="alice")
    running = subprocess.Popen(lab.command("login1", ["sh", "-c", script], user="alice"), stdout=subprocess.PIPE)
    query = ["squeue", "-h", "-n", "outlast", "-t", "RUNNING"]
    process.until(lambda: bool(lab.run_on("login1", query, user="alice").stdout), 30, "the job's start")
    with (lab.paths.etc / "slurm.conf").open("a") as file:
        file.write("# of an earlier version\n")
    lab.up()
    assert "earlier" not in (lab.paths.etc / "slurm.conf").read_text()
    lab.run_on("login1", ["sh", "-c", f"echo went on >{pipe}; rm {pipe}"], user="alice")
    assert running.communicate(timeout=60)[0] == b"went on\n"
    assert running.returncode == 0


def test_without_version_1_control_groups_it_comes_up_and_says_what_that_costs(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab.down()
    with monkeypatch.context() as machine_without_cgroups:
        for module in (kernel, slurmconf):
            machine_without_cgroups.setattr(module, "has_cgroup_v1", lambda: False)
        lab.up()
        assert_works(lab)
        assert "memory limits are not enforced" in lab.status().notes[0]
        hog = ["srun", "--mem=20M", "sh", "-c", "head -c 100M /dev/zero | tail | wc -c"]
        assert lab.run_on("login1", hog, user="alice").stdout == "104857600\n"
        lab.down()


def test_down_works_when_the_folder_was_removed_by_hand(lab: Lab) -> None:
    shutil.rmtree(lab.paths.run)
    (lab.paths.state / "profiles-written").unlink()
    lab.down()
    assert namespaces.all_holders() == {}
    assert not profile.path().exists()


def test_purge_removes_the_folder(lab: Lab, tmp_path: Path) -> None:
    fetched = shutil.copytree(lab.paths.root / "cache", tmp_path / "cache", symlinks=True)
    lab.down(purge=True)
    assert not lab.paths.root.exists()
    shutil.copytree(fetched, lab.paths.root / "cache", symlinks=True)  # fetching takes time, and a way out
    lab.up()
    assert_works(lab)
