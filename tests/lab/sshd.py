"""A real sshd of one test's own, on the loopback interface and a port of its own."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from towline.remote.ssh.access import Access
from towline.remote.ssh.openssh import OpenSSH

HOST = "127.0.0.1"
_SECONDS = 20


def make_key(path: Path) -> Path:
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", path], check=True)
    return path


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])


@dataclass
class Server:
    """The server and what a client needs to log in as the user who runs the test.

    Attributes:
        folder: keys, configuration, log.
        settings: further lines for sshd_config.
    """

    folder: Path
    settings: tuple[str, ...] = ()
    port: int = field(default_factory=free_port)

    def start(self) -> None:
        host_key, key = make_key(self.folder / "host_key"), make_key(self.key)
        shutil.copy(f"{key}.pub", self.folder / "authorized")
        lines = (
            *self.settings,
            f"Port {self.port}",
            f"ListenAddress {HOST}",
            f"HostKey {host_key}",
            f"AuthorizedKeysFile {self.folder}/authorized",
            "PidFile none",
            f"SetEnv TMPDIR={self.scratch}",
            "StrictModes no",
            "UsePAM no",
            "PermitRootLogin yes",
        )
        (self.folder / "sshd_config").write_text("\n".join(lines) + "\n")
        self.user_config.write_text("")
        self.scratch.mkdir()
        Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
        command = ["/usr/sbin/sshd", "-D", "-f", self.folder / "sshd_config", "-E", self.folder / "log"]
        self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL)
        wait_until(lambda: "Server listening" in self.log, self._process)

    def stop(self) -> None:
        self.cut()
        self._process.terminate()
        self._process.wait()

    def cut(self) -> None:
        """Kill every connection's sshd; what runs under it is left to notice."""
        for child in children(self._process.pid):
            for pid in (child, *children(child)):
                if name_of(pid) == "sshd":
                    kill(pid)

    @property
    def key(self) -> Path:
        return self.folder / "key"

    @property
    def scratch(self) -> Path:
        """Where the other side makes its temporary directories."""
        return self.folder / "scratch"

    @property
    def user_config(self) -> Path:
        """Stands in for ~/.ssh/config."""
        return self.folder / "ssh_config"

    @property
    def known_hosts(self) -> Path:
        return self.folder / "known_hosts"

    @property
    def log(self) -> str:
        file = self.folder / "log"
        return file.read_text() if file.exists() else ""

    @property
    def logins(self) -> int:
        return self.log.count("Accepted publickey")

    def freeze(self) -> list[int]:
        """Let no connection answer any more, as when packets are dropped silently; new ones work."""
        frozen = [pid for child in children(self._process.pid) for pid in (child, *children(child))]
        frozen = [pid for pid in frozen if name_of(pid) == "sshd"]
        for pid in frozen:
            os.kill(pid, signal.SIGSTOP)
        return frozen

    def access(
        self, *, port: int | None = None, key: Path | None = None, connect_timeout: int = 10, keepalive: int = 15
    ) -> Access:
        return Access(
            port=port or self.port,
            identity_file=key or self.key,
            known_hosts_file=self.known_hosts,
            connect_timeout=connect_timeout,
            keepalive=keepalive,
            config_file=self.user_config,
        )

    def client(self, *hosts: str, access: Access | None = None, linger: int = 60) -> OpenSSH:
        sockets = self.folder / "s"
        return OpenSSH(hosts or (HOST,), access or self.access(), control_dir=sockets, linger=linger)

    def master_pids(self) -> list[int]:
        """The processes of ours that hold shared connections."""
        marker = f"{self.folder}/s/".encode()
        return [pid for pid, command in commands() if command.startswith(b"ssh\0") and marker in command]


def commands() -> Iterator[tuple[int, bytes]]:
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                yield int(entry.name), (entry / "cmdline").read_bytes()
            except OSError:
                continue


def children(pid: int) -> list[int]:
    try:
        return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def name_of(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return ""


def kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return


def wait_until(condition: object, process: subprocess.Popen[bytes] | subprocess.Popen[str] | None = None) -> None:
    """Look again and again: sshd and ssh tell nobody when they are ready or gone."""
    assert callable(condition)
    end = time.monotonic() + _SECONDS
    while not condition():
        assert time.monotonic() < end, "it did not happen"
        assert process is None or process.poll() is None, "the server ended"
        time.sleep(0.02)
