"""The login hosts: one sshd each, public keys only."""

from __future__ import annotations

from towline.lab.daemons import Daemon, answers
from towline.lab.layout import LOGINS, Host, Layout


def _argv(layout: Layout, host: Host) -> list[str]:
    log = str(layout.log / f"sshd-{host.name}.log")
    return ["/usr/sbin/sshd", "-f", str(layout.etc / f"sshd-{host.name}.conf"), "-E", log]


def sshd(host: Host) -> Daemon:
    """The SSH daemon of one login host."""
    return Daemon(
        "sshd",
        host,
        lambda layout: _argv(layout, host),
        f"sshd-{host.name}.log",
        lambda _: answers(host.address, 22, b"SSH-2.0"),
    )


def check(layout: Layout) -> str:
    """What is wrong; empty when every login host greets."""
    problems = [problem for host in LOGINS if (problem := sshd(host).check(layout))]
    return ", ".join(problems)


def start(layout: Layout) -> None:
    """Start what is missing."""
    for host in LOGINS:
        if sshd(host).check(layout):
            sshd(host).start(layout)


def stop(layout: Layout) -> None:
    """End every sshd with its sessions."""
    for host in LOGINS:
        sshd(host).stop(layout)
