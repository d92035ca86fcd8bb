"""Faults of the shared disk."""

from __future__ import annotations

import errno
import os
from pathlib import Path

from towline.lab import namespaces
from towline.lab.faults import shims
from towline.lab.faults.fault import Fault, Values, number
from towline.lab.files import replace
from towline.lab.layout import LOGINS, NODES, Host, Layout

_USERS_HOSTS = (*LOGINS, *NODES)


def _fill(layout: Layout, _values: Values) -> None:
    ballast = _ballast(layout)
    handle = os.open(ballast, os.O_WRONLY | os.O_CREAT, 0o600)
    try:
        while free := os.fstatvfs(handle).f_bavail:
            _grow(handle, free)
    finally:
        os.close(handle)


def _grow(handle: int, blocks: int) -> None:
    """As much as there is room for; some of it goes into the file system's own tables."""
    end = os.fstat(handle).st_size
    while blocks:
        try:
            os.posix_fallocate(handle, end, blocks * os.fstatvfs(handle).f_frsize)
        except OSError as error:
            if error.errno != errno.ENOSPC:
                raise
            blocks //= 2
        else:
            return


def _empty(layout: Layout, _values: Values) -> None:
    _ballast(layout).unlink(missing_ok=True)


def _ballast(layout: Layout) -> Path:
    """Where users do not come by it."""
    return layout.lustre / "lost+found" / "ballast"


def _exceed(layout: Layout, _values: Values) -> None:
    for command in _quota_commands(layout):
        replace(command, (Path(__file__).parent / "quota.sh").read_text(), 0o755)
    for host in _up(layout, _USERS_HOSTS):
        shims.put(layout, host, "quota", 1)


def _unexceed(layout: Layout, _values: Values) -> None:
    for command in _quota_commands(layout):
        command.unlink(missing_ok=True)
    for host in _USERS_HOSTS:
        shims.take(layout, host, "quota")


def _quota_commands(layout: Layout) -> list[Path]:
    """What users call to see their quota, on every kind of host."""
    return [layout.runtime / folder / "quota" for folder in ("bin", "gpu-bin")]


def _delay(layout: Layout, values: Values) -> None:
    for host in _up(layout, LOGINS):
        shims.put(layout, host, "lag", int(values[0]))


def _undelay(layout: Layout, _values: Values) -> None:
    for host in LOGINS:
        shims.take(layout, host, "lag")


def _up(layout: Layout, hosts: tuple[Host, ...]) -> list[Host]:
    return [host for host in hosts if namespaces.holder(layout, host) is not None]


FAULTS = (
    Fault("disk-full", "not a block is left on the shared disk", _fill, _empty),
    Fault("quota", "users have used up their quota on the shared disk", _exceed, _unexceed, ends_with_host=True),
    Fault(
        "fs-lag",
        "files that nodes make on the shared disk appear MS milliseconds late on login hosts",
        _delay,
        _undelay,
        (number("MS", 1, 600_000),),
    ),
)
