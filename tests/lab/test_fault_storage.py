"""Faults of the shared disk and of clocks, as programs of users meet them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.lab.faulty import as_alice, fault, ssh, try_as_alice
from towline.lab import Lab
from towline.lab.process import until

HERE = "/lustre/alice/fault-tests"


@pytest.fixture(autouse=True)
def folder(lab: Lab) -> Iterator[None]:
    as_alice(lab, f"rm -rf {HERE}; mkdir {HERE}; echo old >{HERE}/old")
    yield
    as_alice(lab, f"rm -rf {HERE}")


def test_a_full_disk_takes_no_more(lab: Lab) -> None:
    with fault(lab, "disk-full"):
        for host in ("login1", "node1"):
            done = try_as_alice(lab, f"cat /etc/passwd >{HERE}/more", host)
            assert done.returncode != 0
            assert "No space left on device" in done.stderr
        assert as_alice(lab, f"cat {HERE}/old") == "old"
    assert as_alice(lab, f"echo more >{HERE}/more; cat {HERE}/more") == "more"


@pytest.mark.parametrize(
    "script",
    [
        f"mkdir {HERE}/new",
        f"echo new >{HERE}/new",
        f"cat /etc/passwd >>{HERE}/old",
        f"cp /etc/passwd {HERE}/",
        f"tar c -C /etc passwd | tar x -C {HERE}",
        f"cd {HERE} && ln -s old link",
        f'python3 -c \'open("{HERE}/new", "w")\'',
        f'python3 -c \'import os; os.write(os.open("{HERE}/old", os.O_WRONLY), b"x")\'',
    ],
)
def test_a_user_over_quota_writes_nothing_more(lab: Lab, script: str) -> None:
    with fault(lab, "quota"):
        for host in ("login1", "node1"):
            done = try_as_alice(lab, script, host)
            assert done.returncode != 0, host
            assert "Disk quota exceeded" in done.stderr
        assert as_alice(lab, f"cat {HERE}/old; echo fine >/tmp/fine; cat /tmp/fine").split() == ["old", "fine"]
        assert ssh(lab, "login1", f"rm {HERE}/old && mkdir -p {HERE} && echo gone").stdout == "gone\n"
    as_alice(lab, f"echo new >{HERE}/new")


def test_a_quota_is_met_by_jobs_and_by_what_ran_before(lab: Lab) -> None:
    job = f"srun sh -c 'echo new >{HERE}/new'"
    with fault(lab, "quota"):
        done = try_as_alice(lab, job)
        assert "Disk quota exceeded" in done.stderr
        with fault(lab, "clock-skew", "login1"):
            pass
        assert "Disk quota exceeded" in try_as_alice(lab, f"mkdir {HERE}/new").stderr, "one shim does not end another"
    as_alice(lab, job)


def test_what_nodes_make_appears_late_on_login_hosts(lab: Lab) -> None:
    new = f"{HERE}/results/new"
    make = f"cd {HERE} && mkdir -p results && echo new >results/.part && mv results/.part results/new"
    with fault(lab, "fs-lag", "600000"):
        as_alice(lab, make, "node1")
        assert as_alice(lab, f"cat {new}; echo seen >{HERE}/seen", "node2") == "new"
        for host in ("login1", "login2"):
            assert as_alice(lab, f"ls {HERE}", host) == "old"
            assert "No such file or directory" in try_as_alice(lab, f"cat {new}", host).stderr
            assert as_alice(lab, f"for f in {HERE}/*; do test -e $f && echo $f; done", host) == f"{HERE}/old"
        own = (
            f"mkdir {HERE}/own && echo own >{HERE}/own/.part && mv {HERE}/own/.part {HERE}/own/file && cat {HERE}/own/*"
        )
        assert as_alice(lab, own, "login1") == "own"
        assert as_alice(lab, f"cat {HERE}/own/file", "login2") == "own"
        refused = try_as_alice(lab, f"mkdir {HERE}/results")
        assert "File exists" in refused.stderr, "the disk knows, as a file server does"
    assert as_alice(lab, f"cat {new} {HERE}/seen").split() == ["new", "seen"]


def test_what_was_late_appears_by_itself(lab: Lab) -> None:
    with fault(lab, "fs-lag", "2000"):
        as_alice(lab, f"echo new >{HERE}/new", "node1")
        assert as_alice(lab, f"ls {HERE}") == "old"
        until(lambda: as_alice(lab, f"ls {HERE}").split() == ["new", "old"], 20, "the file's appearance")


def test_a_host_can_have_a_wrong_clock(lab: Lab) -> None:
    from_python = "python3 -c 'import time; print(int(time.time()))'"
    ask = f'srun -w node1 date +%s & srun -w node2 sh -c "date +%s; {from_python}"; wait'

    def spread() -> float:
        times = [int(line) for line in as_alice(lab, ask).split()]
        return max(times) - min(times)

    with fault(lab, "clock-skew", "node2", "-86400"):
        assert spread() > 80_000
        assert as_alice(lab, "timeout 5 sleep 0.1; echo waited", "node2") == "waited"
    assert spread() < 1000
