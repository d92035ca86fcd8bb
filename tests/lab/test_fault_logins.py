"""Faults of the login hosts, as a client that logs in meets them."""

from __future__ import annotations

import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.lab.faulty import as_alice, fault, ssh, ssh_command
from towline.lab import Lab, LabError
from towline.lab.layout import ALICE, LOGINS

BRIEFLY = ("-o", "ConnectTimeout=2")
NEVER_SSH_AGAIN = ("-o", "ControlMaster=no", "-o", "ProxyCommand=/bin/false")


@pytest.fixture(autouse=True)
def works_afterwards(lab: Lab) -> Iterator[None]:
    yield
    for host in LOGINS:
        done = ssh(lab, host.name, "echo fine")
        assert (done.stdout, done.stderr, done.returncode) == ("fine\n", "", 0)


def connect(index: int = 0) -> socket.socket:
    return socket.create_connection((LOGINS[index].address, 22), timeout=10)


def test_a_login_host_that_is_down_refuses(lab: Lab) -> None:
    with subprocess.Popen(ssh_command(lab, "login1", "echo on; sleep 100"), stdout=subprocess.PIPE) as session:
        assert session.stdout is not None
        assert session.stdout.readline() == b"on\n"
        with fault(lab, "login-down", "login1"):
            assert session.wait(20) == 255
            done = ssh(lab, "login1", "true")
            assert done.returncode == 255
            assert "Connection refused" in done.stderr
            assert ssh(lab, "login2", "hostname").stdout == "login2\n"
            assert any("sshd on login1 is not running" in part.problem for part in lab.status().parts)


def test_a_login_host_that_hangs_accepts_and_says_nothing(lab: Lab) -> None:
    with fault(lab, "login-hang", "login1"):
        with connect() as accepted:
            done = ssh(lab, "login1", "true", options=BRIEFLY)
            assert done.returncode == 255
            assert "timed out during banner exchange" in done.stderr
            accepted.settimeout(0.01)
            with pytest.raises(TimeoutError):
                accepted.recv(1)
        assert ssh(lab, "login2", "hostname").stdout == "login2\n"


def test_a_login_host_that_is_cut_off_gives_no_sign_and_its_sessions_come_back(lab: Lab) -> None:
    command = ssh_command(lab, "login1", "cat")
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as session:
        assert session.stdin is not None
        assert session.stdout is not None
        session.stdin.write(b"before\n")
        session.stdin.flush()
        assert session.stdout.readline() == b"before\n"
        with fault(lab, "login-cut", "login1"):
            session.stdin.write(b"meanwhile\n")
            session.stdin.flush()
            done = ssh(lab, "login1", "true", options=BRIEFLY)
            assert done.returncode == 255
            assert "Connection timed out" in done.stderr
            assert session.poll() is None
            assert as_alice(lab, "sinfo -h -o %P | head -1", host="login1") == "batch*"
        assert session.stdout.readline() == b"meanwhile\n"
        session.stdin.close()
        assert session.wait(20) == 0


def test_a_far_login_host_needs_its_round_trips(lab: Lab) -> None:
    with fault(lab, "login-latency", "300"):
        began = time.monotonic()
        with connect() as connection:
            assert connection.recv(7) == b"SSH-2.0"
        assert time.monotonic() - began >= 0.3
        assert ssh(lab, "login2", "cat; hostname").stdout == "login2\n"
        sent = subprocess.run(
            ssh_command(lab, "login1", "wc -c"), input=b"x" * 3_000_000, capture_output=True, timeout=40, check=True
        )
        assert sent.stdout == b"3000000\n"


def test_a_connection_has_so_many_sessions_and_no_more(lab: Lab, tmp_path: Path) -> None:
    shared = ("-S", str(tmp_path / "s"))
    with fault(lab, "login-maxsessions", "2"), ExitStack() as sessions:
        master = ssh_command(lab, "login1", "echo on; cat", options=("-M", *shared))
        for command in (master, ssh_command(lab, "login1", "echo on; cat", options=(*shared, *NEVER_SSH_AGAIN))):
            session = sessions.enter_context(
                subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
            )
            assert session.stdout is not None
            assert session.stdout.readline() == b"on\n"
        refused = ssh(lab, "login1", "true", options=(*shared, *NEVER_SSH_AGAIN))
        assert refused.returncode == 255
        assert "Session open refused by peer" in refused.stderr


def test_only_so_many_may_be_logging_in_at_a_time(lab: Lab) -> None:
    with fault(lab, "login-maxstartups", "2"), ExitStack() as connections:
        for _ in range(2):
            assert connections.enter_context(connect()).recv(7) == b"SSH-2.0"
        done = ssh(lab, "login1", "true")
        assert done.returncode == 255
        assert "kex_exchange_identification" in done.stderr


@pytest.mark.parametrize("shell", ["bash", "tcsh", "fish"])
def test_logins_can_be_made_to_chatter_whatever_the_shell(lab: Lab, shell: str) -> None:
    home = lab.paths.home / ALICE.name
    before = {path.name: path.read_bytes() for path in home.iterdir() if path.is_file()}
    with fault(lab, "login-shell", shell), fault(lab, "login-banner"):
        done = ssh(lab, "login1", "echo data")
        assert done.returncode == 0
        assert done.stdout.endswith(
            "\n4242|COMPLETED|0:0|alice\nJOBID|STATE|REASON\nquota: 99% of 10737418240 bytes used\ndata\n"
        )
        assert done.stdout.count("Submitted batch job 4242\n") >= 2, "sshd's rc file and the shell's"
        assert "Submitted batch job 1\n" in done.stderr, "the banner"
        assert "Permission denied (publickey).\n" in done.stderr
    after = {path.name: path.read_bytes() for path in home.iterdir() if path.is_file()}
    assert after == before


@pytest.mark.parametrize(("shell", "asks"), [("tcsh", "echo $tcsh"), ("fish", "echo $FISH_VERSION")])
def test_the_login_shell_can_be_another(lab: Lab, shell: str, asks: str) -> None:
    with fault(lab, "login-shell", shell):
        version = ssh(lab, "login1", asks).stdout
        assert version[0].isdecimal(), version
    assert ssh(lab, "login1", asks).stdout == "\n"


def test_a_shell_that_is_not_there_is_refused(lab: Lab) -> None:
    with pytest.raises(LabError, match="no shell 'nonesuch'"):
        lab.fault_on("login-shell", "nonesuch")


def test_a_login_host_can_have_another_key(lab: Lab) -> None:
    with fault(lab, "hostkey-change", "login2"):
        done = ssh(lab, "login2", "true")
        assert done.returncode == 255
        assert "REMOTE HOST IDENTIFICATION HAS CHANGED" in done.stderr
        assert ssh(lab, "login1", "hostname").stdout == "login1\n"
