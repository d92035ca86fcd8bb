"""The lab's secrets: SSH keys of users and login hosts, munge's key, the locked registry's password."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

from towline.lab import process
from towline.lab.accounts import system_user
from towline.lab.files import write_in_place
from towline.lab.layout import LOGINS, USERS, Host, Layout


def write(layout: Layout) -> None:
    """Make what is missing; what is there stays, so that known hosts and profiles go on being right."""
    for user in USERS:
        _make_pair(layout.key(user), user.name)
    for host in LOGINS:
        _make_pair(host_key(layout, host), host.name)
    write_in_place(layout.known_hosts, render_known_hosts(layout), 0o644)
    _make_munge_key(layout)
    if not layout.registry_password.exists():
        write_in_place(layout.registry_password, secrets.token_urlsafe(18) + "\n", 0o600)
    for user in USERS:
        os.chown(layout.key(user), *invoker())


def host_key(layout: Layout, host: Host) -> Path:
    """The private key by which a login host proves who it is."""
    return layout.keys / f"host-{host.name}"


def render_known_hosts(layout: Layout) -> str:
    """The login hosts' public keys under each of their names."""
    lines: list[str] = []
    for host in LOGINS:
        kind, key = host_key(layout, host).with_suffix(".pub").read_text().split()[:2]
        lines.append(f"{','.join([*host.aliases, host.name, host.address])} {kind} {key}\n")
    return "".join(lines)


def munge_key(layout: Layout) -> Path:
    """The key that all of the lab's munge credentials are made with."""
    return layout.etc / "munge.key"


def invoker() -> tuple[int, int]:
    """The uid and gid of the person who runs this, also behind sudo.

    ssh uses a private key only when it belongs to who runs ssh.
    """
    return int(os.environ.get("SUDO_UID") or os.getuid()), int(os.environ.get("SUDO_GID") or os.getgid())


def _make_pair(path: Path, comment: str) -> None:
    if path.exists() and path.with_suffix(".pub").exists():
        return
    path.unlink(missing_ok=True)
    process.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", f"{comment}@lab", "-f", str(path)])


def _make_munge_key(layout: Layout) -> None:
    path = munge_key(layout)
    if path.exists() and path.stat().st_size >= 128:
        return
    path.unlink(missing_ok=True)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o400), "wb") as file:
        file.write(secrets.token_bytes(1024))
    os.chown(path, *system_user("munge"))
