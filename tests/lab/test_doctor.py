"""Each check of the doctor, seen to fail for the right reason; its fix, followed to the letter, makes it pass."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.lab.clinic import Clinic, follow
from tests.lab.faulty import fault
from tests.lab.sshd import make_key
from tests.lab.talk import converse
from tests.lab.terminal import COMMAND
from towline.lab import Lab

BOTH = "login1.lab,login2.lab"
STRICT = Path("/etc/ssh/ssh_config.d/towline-labtest.conf")


@pytest.fixture
def clinic(lab: Lab, tmp_path: Path) -> Iterator[Clinic]:
    found = Clinic(lab, tmp_path, {"hosts": "login1.lab"})
    yield found
    found.end()


@pytest.fixture
def strict() -> Iterator[dict[str, str]]:
    """What makes ssh ask for known host keys, for processes with this environment only."""
    STRICT.write_text('Match exec "env | grep -q ^TOWLINE_LABTEST="\n    StrictHostKeyChecking yes\n')
    yield {"TOWLINE_LABTEST": "1"}
    STRICT.unlink()


def test_a_healthy_lab_is_found_healthy_with_one_login_for_each_host(clinic: Clinic, lab: Lab) -> None:
    clinic.settings["hosts"] = BOTH
    logs = [lab.paths.log / f"sshd-{host}.log" for host in ("login1", "login2")]
    before = [log.read_text().count("Accepted publickey") for log in logs]
    found = clinic.visit()
    assert found.done.code == 0, found.checks
    assert found.failed == []
    assert [log.read_text().count("Accepted publickey") for log in logs] == [count + 1 for count in before]
    assert clinic.as_alice("ls -A /lustre/alice/towline | grep doctor || true") == ""


# --- This machine and the way there ---


def test_a_key_that_others_can_read(clinic: Clinic) -> None:
    key = clinic.key(0o644)
    found = clinic.visit()
    assert (found.failed[0], found.done.code) == ("key", 78)
    assert found["key"]["fix"] == f"chmod 600 {key}"
    follow(found["key"]["fix"])
    assert clinic.visit().failed == []


def test_safe_fixes_are_applied_when_told_to(clinic: Clinic) -> None:
    key = clinic.key(0o644)
    untouched = clinic.visit("--fix")
    assert (untouched.done.code, key.stat().st_mode & 0o777) == (78, 0o644)
    mended = clinic.visit("--fix", "--yes")
    assert (mended.done.code, key.stat().st_mode & 0o777) == (0, 0o600)
    assert mended.done.lines[-1]["doctor"]["mended"] == [f"make private: {key}"]


def test_a_fix_waits_for_consent(clinic: Clinic) -> None:
    key = clinic.key(0o644)
    env = clinic.terminal().env()
    for answer, mode in (("n", 0o644), ("y", 0o600)):
        status, shown = converse([*COMMAND, "doctor", "--fix"], [(r"make private: \S+\? \[y/N\]: ", answer)], env)
        assert (status == 0, key.stat().st_mode & 0o777) == (answer == "y", mode), shown


def test_a_machine_without_ssh(clinic: Clinic) -> None:
    found = clinic.visit(PATH=str(clinic.folder))
    assert (found.failed[0], found.done.code) == ("ssh-client", 78)
    assert "apt-get install openssh-client" in found["ssh-client"]["fix"]


def test_a_host_name_that_nobody_knows_and_a_port_that_is_closed(clinic: Clinic) -> None:
    clinic.settings["hosts"] = "nosuch.lab"
    found = clinic.visit()
    assert (found.failed, found.done.code) == (["name"], 69)
    clinic.settings["hosts"] = "login1.lab"
    clinic.settings["port"] = "2"
    found = clinic.visit()
    assert (found.failed[0], found.done.code) == ("port", 69)
    assert "Connection refused" in found["port"]["evidence"]
    clinic.settings["port"] = "22"
    assert clinic.visit().failed == []


def test_a_host_key_that_has_changed(clinic: Clinic) -> None:
    known = clinic.known_hosts()
    other = make_key(clinic.folder / "other").with_suffix(".pub").read_text().split()
    lines = known.read_text().splitlines()
    known.write_text("".join(f"{line.split()[0]} {other[0]} {other[1]}\n" for line in lines))
    found = clinic.visit()
    assert (found.failed, found.done.code) == (["host-key"], 77)
    assert len(set(re.findall(r"SHA256:\S+", found["host-key"]["evidence"].replace(",", "")))) == 2
    for each in [each for each in found.checks if each["id"] == "host-key"]:
        follow(each["fix"].splitlines()[-1].partition("forget the old key: ")[2])
    assert clinic.visit().failed == []


def test_a_host_key_that_is_not_known(clinic: Clinic, strict: dict[str, str]) -> None:
    known = clinic.known_hosts()
    known.write_text("")
    found = clinic.visit(**strict)
    assert (found.failed, found.done.code) == (["host-key"], 77)
    assert "SHA256:" in found["host-key"]["evidence"]
    for each in [each for each in found.checks if each["id"] == "host-key"]:
        follow(each["fix"].partition("take the key: ")[2])
    assert clinic.visit(**strict).failed == []


@pytest.mark.parametrize(
    ("name", "words", "failing", "code"),
    [
        ("login-down", ("login1",), "port", 69),
        ("slurmdbd-down", (), "accounting", 75),
        ("slurmctld-down", (), "slurm", 75),
    ],
)
def test_faults_of_the_site(
    clinic: Clinic, lab: Lab, name: str, words: tuple[str, ...], failing: str, code: int
) -> None:
    if name == "login-down":
        clinic.settings["hosts"] = BOTH
    with fault(lab, name, *words):
        found = clinic.visit()
    assert failing in found.failed, found.checks
    assert found.done.code == code
    assert found[failing]["fix"]
    assert clinic.visit().failed == []


def test_a_shell_of_another_kind_and_chatter_do_no_harm(clinic: Clinic, lab: Lab) -> None:
    with fault(lab, "login-shell", "tcsh"), fault(lab, "login-banner"):
        found = clinic.visit()
    assert found.failed == []
    assert found["shell"]["evidence"].endswith("tcsh")


def test_what_a_site_has_turned_off_is_told_and_is_no_failure(clinic: Clinic, lab: Lab) -> None:
    with fault(lab, "accounting-off"), fault(lab, "no-requeue"):
        found = clinic.visit()
    assert found.failed == []
    assert "off at this site" in found["accounting"]["evidence"]
    assert "off unless a job asks" in found["requeue"]["evidence"]


# --- Slurm ---


@pytest.mark.parametrize(
    ("setting", "wrong", "failing", "right"),
    [
        ("partition", "nosuch", "partition", r"one of these: (\w+)"),
        ("account", "nosuch", "account", r"`account` in the profile to (\w+)"),
        ("qos", "nosuch", "account", r"take it away: \w+, (\w+)"),
        ("time", "9h", "limits", r'time = "([0-9:]+)"'),
    ],
)
def test_settings_that_slurm_would_refuse(clinic: Clinic, setting: str, wrong: str, failing: str, right: str) -> None:
    clinic.settings[setting] = wrong
    found = clinic.visit()
    assert failing in found.failed
    assert found.done.code == 76
    value = re.search(right, found[failing]["fix"])
    assert value, found[failing]["fix"]
    clinic.settings[setting] = value[1]
    assert clinic.visit().failed == []


def test_slurm_that_only_a_setup_line_makes_available(clinic: Clinic, lab: Lab) -> None:
    lab.run_on("login2", ["sh", "-c", "mkdir -p /opt/labtest && cp /usr/bin/sbatch /opt/labtest/"], check=True)
    lab.run_on("login2", ["mount", "--bind", "/dev/null", "/usr/bin/sbatch"], check=True)
    try:
        clinic.settings["hosts"] = "login2.lab"
        found = clinic.visit()
        assert (found.failed, found.done.code) == (["slurm"], 71)
        assert "sbatch cannot be run" in found["slurm"]["evidence"]
        assert "`setup`" in found["slurm"]["fix"]
        clinic.settings["setup"] = "PATH=/opt/labtest:$PATH"
        assert clinic.visit().failed == []
    finally:
        lab.run_on("login2", ["sh", "-c", "umount /usr/bin/sbatch; rm -r /opt/labtest"], check=True)


# --- Files ---


def test_credentials_that_others_can_read(clinic: Clinic) -> None:
    clinic.as_alice(
        "mkdir -p .config/enroot; echo 'machine nvcr.io login x password sentinel-3141' >.config/enroot/.credentials; "
        "chmod 644 .config/enroot/.credentials"
    )
    try:
        found = clinic.visit()
        assert (found.failed, found.done.code) == (["credentials"], 77)
        assert "sentinel-3141" not in found.done.out + found.done.err
        clinic.as_alice(found["credentials"]["fix"].removeprefix("On the cluster: "))
        assert clinic.visit().failed == []
    finally:
        clinic.as_alice("rm .config/enroot/.credentials")


@pytest.mark.parametrize(
    ("root", "says"),
    [("/etc/towline", "cannot write in /etc"), ("/lustre/images/python.sqsh", "not a directory")],
)
def test_a_root_that_cannot_be_used(clinic: Clinic, root: str, says: str) -> None:
    clinic.settings["root"] = root
    found = clinic.visit()
    assert "root" in found.failed
    assert found.done.code == 73
    assert says in found["root"]["evidence"]


def test_a_root_that_others_can_write_is_closed(clinic: Clinic) -> None:
    clinic.as_alice("mkdir -m 777 /lustre/alice/labtest-open")
    try:
        clinic.settings["root"] = "/lustre/alice/labtest-open"
        assert clinic.visit().failed == ["root"]
        assert clinic.visit("--fix", "--yes").done.code == 0
        assert clinic.as_alice("stat -c %a /lustre/alice/labtest-open") == "700\n"
    finally:
        clinic.as_alice("rm -r /lustre/alice/labtest-open")


def test_a_root_that_the_hosts_do_not_share(clinic: Clinic) -> None:
    clinic.settings |= {"root": "/tmp/labtest/towline", "hosts": BOTH}
    found = clinic.visit()
    assert (found.failed, found.done.code) == (["root-shared"], 73)
    assert "not seen on login2.lab" in found["root-shared"]["evidence"]
    clinic.settings["root"] = "/lustre/alice/towline"
    assert clinic.visit().failed == []


def test_a_disk_without_space_and_without_inodes(clinic: Clinic, lab: Lab) -> None:
    small = "mkdir -p /mnt/labtest && mount -t tmpfs -o size=4m,nr_inodes=100,mode=777 labtest /mnt/labtest"
    lab.run_on("login1", ["sh", "-c", small], check=True)
    try:
        clinic.settings.update(hosts="login1.lab", root="/mnt/labtest/towline")
        found = clinic.visit()
        assert (found.failed, found.done.code) == (["inodes", "space"], 73)
        assert "set `root` in the profile to a directory on a file system with space" in found["space"]["fix"]
        clinic.settings["root"] = "/lustre/alice/towline"
        assert clinic.visit().failed == []
    finally:
        lab.run_on("login1", ["sh", "-c", "umount /mnt/labtest; rmdir /mnt/labtest"], check=True)


# --- What only a job can tell ---


def test_a_job_tells_what_a_node_sees(clinic: Clinic) -> None:
    found = clinic.visit("--deep")
    assert found.failed == [], found.checks
    assert "LabPython" in found["deep-container"]["evidence"]
    assert "scontrol requeue and by sbatch" in found["deep-next-attempt"]["evidence"]
    assert clinic.as_alice("ls -d /lustre/alice/towline/doctor-* 2>/dev/null || true") == ""
    assert clinic.as_alice("squeue -h -u alice -o %j | grep towline-doctor || true") == ""


def test_a_job_tells_that_the_image_is_missing(clinic: Clinic) -> None:
    clinic.settings["image"] = "/lustre/images/nosuch.sqsh"
    found = clinic.visit("--deep")
    assert (found.failed, found.done.code) == (["deep-container"], 71)
    assert "No such file or directory" in found["deep-container"]["evidence"]
    assert found["deep-container"]["fix"].endswith("/lustre/images/nosuch.sqsh")
    clinic.settings["image"] = "/lustre/images/busybox.sqsh"
    assert clinic.visit("--deep").failed == []


def test_a_job_tells_that_nodes_do_not_see_the_root(clinic: Clinic) -> None:
    clinic.settings.update(hosts="login1.lab", root="/tmp/labtest/towline")
    try:
        found = clinic.visit("--deep")
        assert found.failed == ["deep-job"], found.checks
        assert "must be on the shared file system" in found["deep-job"]["fix"]
        clinic.settings["root"] = "/lustre/alice/towline"
        assert clinic.visit("--deep").failed == []
    finally:
        clinic.as_alice("rm -rf /tmp/labtest")


def test_a_job_tells_that_credentials_are_not_on_the_nodes(clinic: Clinic, lab: Lab) -> None:
    place = "/home/alice/.config/enroot"
    own = f"install -d -o alice {place} && mount -t tmpfs -o mode=777 labtest {place}"
    lab.run_on("login1", ["sh", "-c", own], check=True)
    clinic.settings["hosts"] = "login1.lab"
    try:
        clinic.as_alice(f"umask 077; echo 'machine x login y password z' >{place}/.credentials")
        found = clinic.visit("--deep")
        assert (found.failed, found.done.code) == (["deep-credentials"], 77)
        assert "Ask the site for a home directory on the nodes" in found["deep-credentials"]["fix"]
    finally:
        lab.run_on("login1", ["umount", place], check=True)
    clinic.as_alice(f"umask 077; echo 'machine x login y password z' >{place}/.credentials")
    try:
        found = clinic.visit("--deep")
        assert found.failed == []
        assert found["deep-credentials"]["evidence"].endswith("credentials: there")
    finally:
        clinic.as_alice(f"rm {place}/.credentials")


def test_a_job_tells_that_enroot_has_no_space_on_the_nodes(clinic: Clinic, lab: Lab) -> None:
    nodes = ("node1", "node2", "node3", "node4")
    small = ["mount", "-t", "tmpfs", "-o", "size=4m,mode=1777", "labtest", "/var/tmp"]
    for node in nodes:
        lab.run_on(node, small, check=True)
    try:
        found = clinic.visit("--deep")
        assert (found.failed, found.done.code) == (["deep-enroot"], 73)
        assert "little space for Enroot's temp: /var/tmp has 0.0 GiB free (tmpfs)" in found["deep-enroot"]["evidence"]
    finally:
        for node in nodes:
            lab.run_on(node, ["umount", "/var/tmp"], check=True)
    assert clinic.visit("--deep").failed == []


@pytest.mark.parametrize(
    ("faults", "verdict", "says"),
    [
        (("no-submit-from-nodes",), "ok", "by scontrol requeue"),
        (("no-scontrol-on-nodes",), "ok", "by sbatch from the node"),
        (("no-scontrol-on-nodes", "no-submit-from-nodes"), "cannot-tell", "the next client does it"),
    ],
)
def test_which_ways_to_a_next_attempt_a_site_allows(
    clinic: Clinic, lab: Lab, faults: tuple[str, ...], verdict: str, says: str
) -> None:
    for name in faults:
        lab.fault_on(name)
    try:
        found = clinic.visit("--deep")["deep-next-attempt"]
    finally:
        for name in faults:
            lab.fault_off(name)
    assert found["verdict"] == verdict
    assert found["evidence"].endswith(says)
