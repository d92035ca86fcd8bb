"""Libraries that change what the C library tells programs on a lab host; see `shim.h`."""

from __future__ import annotations

import os
import struct
import time
from pathlib import Path

from towline.lab import namespaces
from towline.lab.errors import LabError
from towline.lab.faults import native
from towline.lab.files import write_in_place
from towline.lab.layout import Host, Layout


def put(layout: Layout, host: Host, name: str, strength: int) -> None:
    """Have programs that start on a host from now on go through the shim NAME.c. Raises `LabError` when it is down."""
    if not _file(layout, host).exists():
        raise LabError(f"{host.name} was booted without a place for this.", fix="`towline lab down`, then `up`.")
    library = native.library(layout, name)
    _set_strength(namespaces.root_of(layout, host), name, strength)
    others = [line for line in _preloaded(layout, host) if f"/{name}-" not in line]
    _preload(layout, host, [*others, str(library)])


def take(layout: Layout, host: Host, name: str) -> None:
    """Undo it, in running programs, too."""
    if namespaces.holder(layout, host) is None or not _file(layout, host).exists():
        return  # its next boot begins without
    _preload(layout, host, [line for line in _preloaded(layout, host) if f"/{name}-" not in line])
    _set_strength(namespaces.root_of(layout, host), name, 0)


def _set_strength(root: Path, name: str, strength: int) -> None:
    folder = root / "run" / "lab-faults"
    folder.mkdir(mode=0o755, exist_ok=True)
    handle = os.open(folder / name, os.O_WRONLY | os.O_CREAT, 0o644)  # never cut short: programs have it mapped
    try:
        os.pwrite(handle, struct.pack("=qq", strength, time.time_ns() // 1_000_000), 0)
    finally:
        os.close(handle)


def _preloaded(layout: Layout, host: Host) -> list[str]:
    return _file(layout, host).read_text().splitlines()


def _preload(layout: Layout, host: Host, lines: list[str]) -> None:
    write_in_place(_file(layout, host), "".join(f"{line}\n" for line in lines), 0o644)


def _file(layout: Layout, host: Host) -> Path:
    """What the host sees as /etc/ld.so.preload."""
    return layout.own(host) / "etc" / "ld.so.preload"
