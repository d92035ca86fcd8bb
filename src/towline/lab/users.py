"""The accounts that lab hosts know: this machine's system accounts and the cluster's users.

The cluster's users exist in the hosts' own /etc/passwd only; this machine's is not touched.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from towline.lab import overrides
from towline.lab.files import write_in_place
from towline.lab.layout import CLUSTER_HOSTS, UPLINK_ADDRESS, USERS, Layout, User

_FIRST_PERSON, _LAST_PERSON = 1000, 59_999
"""Debian's range of ids for people; system accounts, slurm's among them, are outside it."""
_NSSWITCH = "passwd: files\ngroup: files\nshadow: files\nhosts: files\nservices: files\nprotocols: files\n"


def render_passwd(machine: str) -> str:
    """The hosts' /etc/passwd, from this machine's: system accounts are taken over, people are not."""
    people = (f"{u.name}:x:{u.uid}:{u.uid}:{u.name} of the lab:/home/{u.name}:/bin/bash" for u in USERS)
    return _lines([*_system_lines(machine), *people])


def render_group(machine: str) -> str:
    """The hosts' /etc/group, without members from this machine."""
    system = (":".join([*line.split(":")[:3], ""]) for line in _system_lines(machine))
    return _lines([*system, *(f"{user.name}:x:{user.uid}:" for user in USERS)])


def render_shadow(passwd: str) -> str:
    """The hosts' /etc/shadow. `*` and not `!`: sshd without PAM refuses accounts that are locked by `!`."""
    return _lines([f"{line.split(':')[0]}:*:19000:0:99999:7:::" for line in passwd.splitlines()])


def render_hosts() -> str:
    """The hosts' /etc/hosts."""
    return _lines(["127.0.0.1 localhost", f"{UPLINK_ADDRESS} outside outside.lab", *host_lines()])


def host_lines() -> list[str]:
    """One line of /etc/hosts per lab host."""
    return [" ".join([host.address, host.name, *host.aliases]) for host in CLUSTER_HOSTS]


def rendered(layout: Layout) -> dict[str, tuple[str, int]]:
    """Every account file with its content and mode."""
    passwd = render_passwd(Path("/etc/passwd").read_text())
    return {
        "passwd": (overrides.apply(layout, "passwd", passwd), 0o644),
        "group": (render_group(Path("/etc/group").read_text()), 0o644),
        "shadow": (overrides.apply(layout, "shadow", render_shadow(passwd)), 0o640),
        "hosts": (render_hosts(), 0o644),
        "nsswitch.conf": (_NSSWITCH, 0o644),
    }


def write(layout: Layout) -> None:
    """Write the account files and the users' homes."""
    for name, (text, mode) in rendered(layout).items():
        write_in_place(layout.etc / name, text, mode)
    layout.home.mkdir(exist_ok=True)
    for user in USERS:
        _make_home(layout, user)


def _make_home(layout: Layout, user: User) -> None:
    home = layout.home / user.name
    if not home.exists():
        shutil.copytree("/etc/skel", home, symlinks=True)
    home.chmod(0o700)
    (home / ".ssh").mkdir(mode=0o700, exist_ok=True)
    keys = home / ".ssh" / "authorized_keys"
    write_in_place(keys, layout.key(user).with_suffix(".pub").read_text(), 0o600)
    for path in (home, *home.iterdir(), keys):
        os.lchown(path, user.uid, user.uid)


def _system_lines(text: str) -> list[str]:
    entries = [(line, line.split(":")) for line in text.splitlines()]
    numbered = [(line, int(fields[2])) for line, fields in entries if len(fields) > 3 and fields[2].isdecimal()]
    return [line for line, number in numbered if not _FIRST_PERSON <= number <= _LAST_PERSON]


def _lines(lines: list[str]) -> str:
    return "".join(f"{line}\n" for line in lines)
