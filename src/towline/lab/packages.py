"""The distribution's packages the lab is made of."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
from collections.abc import Callable, Generator
from pathlib import Path

from towline.lab import process
from towline.lab.errors import LabError

_NEEDED = {
    "slurmctld": "slurmctld",
    "slurmd": "slurmd",
    "slurmdbd": "slurmdbd",
    "sinfo": "slurm-client",
    "munged": "munge",
    "mariadbd": "mariadb-server",
    "sshd": "openssh-server",
    "ssh": "openssh-client",
    "gcc": "gcc",
    "ip": "iproute2",
    "nft": "nftables",
    "mkfs.ext4": "e2fsprogs",
    "losetup": "mount",
    "nsenter": "util-linux",
    "mksquashfs": "squashfs-tools",
    "ps": "procps",
    "skopeo": "skopeo",
    "umoci": "umoci",
    "docker-registry": "docker-registry",
    "busybox": "busybox-static",
    "jq": "jq",
    "curl": "curl",
    "htpasswd": "apache2-utils",
    "openssl": "openssl",
}
"""A program of each package that has one."""
_NEEDED_FILES = {
    "/usr/include/slurm/spank.h": "libslurm-dev",
    "/usr/lib/*/slurm*/accounting_storage_mysql.so": "slurm-wlm-mysql-plugin",
    "/usr/lib/*/slurm*/auth_munge.so": "slurm-wlm-basic-plugins",
    "/usr/lib/*/crt1.o": "libc6-dev",
}
_POLICY = Path("/usr/sbin/policy-rc.d")
_POLICY_TEXT = "#!/bin/sh\n# towline lab, while it installs packages\nexit 101\n"


def missing() -> list[str]:
    """The packages that are not there, in the order of the list above."""
    programs = [name for program, name in _NEEDED.items() if shutil.which(program, path=process.PATH) is None]
    files = [name for pattern, name in _NEEDED_FILES.items() if not any(Path("/").glob(pattern[1:]))]
    return [*programs, *files]


def install_command(packages: list[str]) -> list[str]:
    """The command that installs packages."""
    return ["apt-get", "install", "--yes", "--no-install-recommends", *packages]


def require() -> None:
    """Raises `LabError` with the exact command when a package is missing."""
    if packages := missing():
        command = " ".join(install_command(packages))
        raise LabError(
            f"{len(packages)} of the lab's packages are not installed: {', '.join(packages)}.",
            fix=f"Run `towline lab up --install`, or by hand: apt-get update && {command}",
        )


def install(report: Callable[[str], None] = lambda _line: None) -> None:
    """Install what is missing, and let none of it start a service.

    Args:
        report: is told before the wait, which can take a minute or two.

    Raises:
        LabError: apt-get is not there or failed; what it said last is in the message.
    """
    packages = missing()
    if not packages:
        return
    if shutil.which("apt-get") is None:
        raise LabError("The lab needs Debian's or Ubuntu's packages, and there is no apt-get here.")
    report(f"installing {len(packages)} packages (a minute or two): {', '.join(packages)}")
    with _no_service_starts():
        # The first finishes what an installation that was killed has left half done.
        for command in (["dpkg", "--configure", "-a"], ["apt-get", "update"], install_command(packages)):
            _apt(command)
    require()


def _apt(command: list[str]) -> None:
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C"}
    done = subprocess.run(
        command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise LabError(f"`{' '.join(command[:2])}` failed.", why=(done.stdout + done.stderr)[-2000:].strip())


@contextlib.contextmanager
def _no_service_starts() -> Generator[None]:
    """Forbid packages to start services while they are installed (invoke-rc.d asks /usr/sbin/policy-rc.d)."""
    if _POLICY.exists() and _POLICY.read_text() != _POLICY_TEXT:
        yield
        return
    _POLICY.write_text(_POLICY_TEXT)
    _POLICY.chmod(0o755)
    try:
        yield
    finally:
        _POLICY.unlink(missing_ok=True)
