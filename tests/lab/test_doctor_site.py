"""The doctor where the site is in the way: container runtime, quotas, rights, limits; each fix is followed."""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from tests.lab.clinic import Clinic
from tests.lab.faulty import fault
from towline.lab import Lab
from towline.lab.layout import BOB, GPU_NODES

BIN = "/lustre/alice/labtest-bin"
PYXIS = "/etc/slurm/plugstack.conf.d/pyxis.conf"
LFS = "     /lustre/alice {used} 1048576 2097152 {grace} 12 0 0 -"
"""A line of `lfs quota -q`: KiB used, soft and hard limit, grace; the same of files. `*` marks what is over a limit."""
QUOTA = """\
Disk quotas for user alice (uid 2001):
     Filesystem  blocks   quota   limit   grace   files   quota   limit   grace
     nfs:/lustre {used} 1048576 2097152 {grace} 12 0 0"""


@pytest.fixture
def clinic(lab: Lab, tmp_path: Path) -> Iterator[Clinic]:
    found = Clinic(lab, tmp_path, {"hosts": "login1.lab"})
    yield found
    found.end()


@contextmanager
def covered(lab: Lab, path: str, content: str, *hosts: str) -> Generator[None]:
    """Hosts see another file in place of one of theirs."""
    cover = "f=/run/labtest-$$; cat >$f; chmod 755 $f; mount --bind $f $(readlink -f $1)"
    try:
        for host in hosts:
            lab.run_on(host, ["sh", "-c", cover, "sh", path], stdin=content, check=True)
        yield
    finally:
        for host in hosts:
            lab.run_on(host, ["sh", "-c", 'umount "$(readlink -f "$1")"', "sh", path])


@contextmanager
def programs(clinic: Clinic) -> Generator[None]:
    """A folder of programs that the profile's setup line puts before others."""
    clinic.as_alice(f"mkdir -p {BIN}")
    clinic.settings["setup"] = f"PATH={BIN}:$PATH"
    try:
        yield
    finally:
        clinic.as_alice(f"rm -r {BIN}")


def program(clinic: Clinic, name: str, prints: str, code: int = 0) -> None:
    clinic.as_alice(
        f"{{ echo '#!/bin/sh'; echo \"echo '{prints}'\"; echo exit {code}; }} >{BIN}/{name}; chmod 755 {BIN}/{name}"
    )


# --- The container runtime ---


def test_a_container_runtime_that_is_missing_broken_or_lax(clinic: Clinic, lab: Lab) -> None:
    enroot, plugin = "/usr/local/bin/enroot", clinic.as_alice(f"cat {PYXIS}")
    with covered(lab, PYXIS, "", "login1"):
        found = clinic.visit()
        assert (found.failed, found.done.code) == (["pyxis"], 71)
        assert "Ask the site for Pyxis" in found["pyxis"]["fix"]
    small = "mkdir -p /mnt/labtest && mount -t tmpfs -o size=4m,mode=777 labtest /mnt/labtest"
    lab.run_on("login1", ["sh", "-c", small], check=True)
    try:
        lax, broken = plugin.replace("required", "optional"), "#!/bin/sh\necho no such file >&2\nexit 3\n"
        with covered(lab, PYXIS, lax, "login1"), covered(lab, enroot, broken, "login1"):
            clinic.settings["setup"] = "export ENROOT_CACHE_PATH=/mnt/labtest/cache ENROOT_DATA_PATH=/etc/data"
            found = clinic.visit()
            assert (found.failed, found.done.code) == (["enroot", "enroot-space"], 71)
            assert "`optional` in plugstack.conf" in found["pyxis"]["evidence"]
            assert "enroot fails: no such file" in found["enroot"]["evidence"]
            assert "/mnt/labtest/cache has 0.0 GiB free (tmpfs)" in found["enroot-space"]["evidence"]
        clinic.settings["setup"] = "export ENROOT_DATA_PATH=/etc/data"
        found = clinic.visit()
        assert found.failed == ["enroot-space"]
        assert "/etc/data cannot be written" in found["enroot-space"]["evidence"]
    finally:
        lab.run_on("login1", ["sh", "-c", "umount /mnt/labtest; rmdir /mnt/labtest"], check=True)
    clinic.settings["setup"] = "export ENROOT_DATA_PATH=/lustre/alice/enroot"
    assert clinic.visit().failed == []


def test_credentials_that_an_image_needs(clinic: Clinic) -> None:
    clinic.settings["image"] = "nvcr.io/nvidia/pytorch:24.07-py3"
    found = clinic.visit()
    assert (found.failed, found.done.code) == (["credentials"], 77)
    give = found.command("credentials", "Give it to the cluster").split()
    assert give[0] == "towline"
    try:
        assert clinic.terminal(NGC_KEY="sentinel-2718")(*give[1:]).code == 0
        found = clinic.visit()
        assert found.failed == []
        assert "nvcr.io as $oauthtoken" in found["credentials"]["evidence"]
        assert "sentinel-2718" not in found.done.out
    finally:
        clinic.as_alice("rm -f .config/enroot/.credentials")


# --- Storage ---


def test_quotas_that_are_used_up(clinic: Clinic, lab: Lab) -> None:
    with programs(clinic):
        program(clinic, "lfs", LFS.format(used="1048580*", grace="6d23h"))
        with fault(lab, "quota"):
            found = clinic.visit()
        assert (found.failed, found.done.code) == (["root", "quota"], 73)
        assert "Disk quota exceeded" in found["root"]["evidence"]
        assert "it is used up: /lustre/alice 1048580*" in found["quota"]["evidence"]
        assert "Delete what you do not need" in found["quota"]["fix"]
        program(clinic, "lfs", "lfs quota: not on a mounted Lustre filesystem", 1)
        program(clinic, "quota", QUOTA.format(used="2097152*", grace="none"))
        assert clinic.visit().failed == ["quota"]
        program(clinic, "lfs", LFS.format(used="1048", grace="-"))
        found = clinic.visit()
        assert (found.failed, found["quota"]["evidence"]) == ([], "not used up")


def test_a_root_that_its_owner_has_closed(clinic: Clinic) -> None:
    root = "/lustre/alice/labtest-closed"
    clinic.as_alice(f"mkdir -m 500 {root}")
    clinic.settings["root"] = root
    try:
        found = clinic.visit()
        assert (found.failed, found.done.code) == (["root"], 73)
        clinic.as_alice(found.command("root", "On the cluster"))
        assert clinic.visit().failed == []
    finally:
        clinic.as_alice(f"chmod 700 {root}; rm -r {root}")


# --- Slurm ---


def test_login_hosts_of_two_clusters(clinic: Clinic, lab: Lab) -> None:
    clinic.settings["hosts"] = "login1.lab,login2.lab"
    lab.run_on("login2", ["sh", "-c", "mkdir /opt/labtest && cp /usr/bin/scontrol /opt/labtest/"], check=True)
    other = '#!/bin/sh\n/opt/labtest/scontrol "$@" | sed "s/^\\(ClusterName  *= \\).*/\\1other/"\n'
    try:
        with covered(lab, "/usr/bin/scontrol", other, "login2"):
            found = clinic.visit()
            assert (found.failed, found.done.code) == (["cluster-name"], 78)
            assert "login1.lab: lab, login2.lab: other" in found["cluster-name"]["evidence"]
            clinic.settings["hosts"] = found.command("cluster-name", "for lab")
            assert clinic.visit().failed == []
    finally:
        lab.run_on("login2", ["rm", "-r", "/opt/labtest"])


def test_what_a_site_wants_of_jobs_and_soon_forgets(clinic: Clinic, lab: Lab) -> None:
    with fault(lab, "typed-gpus-only"), fault(lab, "accounting-off"), fault(lab, "min-job-age", "2"):
        found = clinic.visit()
        assert (found.failed, found.done.code) == (["min-job-age", "gpu-request"], 78)
        assert "forgotten after 2 s, and there is no accounting" in found["min-job-age"]["evidence"]
        assert "GPUs are asked for with their type here" in found["gpu-request"]["evidence"]
        for name in found.failed:
            value = re.search(r'Set (\w+) = "?([\w-]+)"? in the profile', found[name]["fix"])
            assert value, found[name]["fix"]
            clinic.settings[value[1]] = value[2]
        assert clinic.visit().failed == []


def test_a_user_whom_slurm_does_not_know(clinic: Clinic, lab: Lab) -> None:
    clinic.settings |= {"user": "bob", "identity_file": str(lab.paths.key(BOB)), "root": "/lustre/bob/towline"}
    found = clinic.visit()
    assert (found.failed, found.done.code) == (["account"], 76)
    assert found["account"]["fix"] == "Ask the site for an account for bob: Slurm knows none."
    association = ["user", "bob", "account=research"]
    lab.run_on("ctl", ["sacctmgr", "-i", "add", *association], check=True)
    try:
        assert clinic.visit().failed == []
    finally:
        lab.run_on("ctl", ["sacctmgr", "-i", "remove", *association[:2]], check=True)


def test_a_partition_that_is_down(clinic: Clinic, lab: Lab) -> None:
    clinic.settings["partition"] = "urgent"
    lab.run_on("ctl", ["scontrol", "update", "PartitionName=urgent", "State=DOWN"], check=True)
    try:
        found = clinic.visit()
        assert (found.failed[0], found.done.code) == ("partition", 76)
        assert "takes no jobs now" in found["partition"]["evidence"]
    finally:
        lab.run_on("ctl", ["scontrol", "update", "PartitionName=urgent", "State=UP"], check=True)
    assert clinic.visit().failed == []


# --- What only a job can tell ---


def test_nodes_that_run_commands_without_the_container_and_have_lost_gpus(clinic: Clinic, lab: Lab) -> None:
    nodes = [host.name for host in GPU_NODES]
    lax = clinic.as_alice(f"cat {PYXIS}").replace("required", "optional")
    clinic.settings["image"] = "/lustre/images/nosuch.sqsh"
    with covered(lab, PYXIS, lax, *nodes):
        found = clinic.visit("--deep")
        assert (found.failed, found.done.code) == (["deep-container"], 71)
        assert "on the bare node, not in the image" in found["deep-container"]["evidence"]
        assert "`required` in plugstack.conf" in found["deep-container"]["fix"]
    del clinic.settings["image"]
    with ExitStack() as faults:
        for node in nodes:
            faults.enter_context(fault(lab, "gpu-lost", node, "0"))
        found = clinic.visit("--deep")
        assert (found.failed, found.done.code) == (["deep-gpus"], 71)
        assert "nvidia-smi says: Unable to determine the device handle" in found["deep-gpus"]["evidence"]
    assert clinic.visit("--deep").failed == []
