"""Bytes over a far network against ssh with `cat` and `tar`."""

from __future__ import annotations

import os
import shlex
import subprocess
from itertools import count
from pathlib import Path

from harness.bench.far import far_host
from harness.bench.registry import Reading, benchmark
from harness.bench.timing import compare
from towline.remote.files.transfer import Transfers

SLOWER = 1 / 0.9
"""At least 0.9 times the rate is at most this many times the time."""
GIGABYTE = 1_000_000_000
FILES = 2_000


@benchmark("pull", unit="x", limit=round(SLOWER, 3))
def pull() -> Reading:
    """Time to bring home 1 GB at 50 ms round trip against `ssh host cat`."""
    with far_host() as far:
        source, dest = far.folder / "source", far.folder / "home"
        _fill(source, GIGABYTE)
        transfers = Transfers(far.client)
        plain = f"{shlex.join(far.command)} cat {source} > {far.folder}/plain-home"

        def subject() -> None:
            assert far.run(transfers.download(str(source), dest)).bytes == GIGABYTE
            dest.unlink()

        return compare(subject, lambda: _shell(plain), rounds=2)


@benchmark("push", unit="x", limit=round(SLOWER, 3))
def push() -> Reading:
    """Time to send 2,000 small files at 50 ms round trip against `tar | ssh tar`."""
    with far_host() as far:
        source = far.folder / "source"
        files = _tree(source)
        transfers = Transfers(far.client)
        numbers = count()

        def subject() -> None:
            far.run(transfers.upload(files, f"{far.folder}/up/{next(numbers)}"))

        def baseline() -> None:
            dest = f"{far.folder}/up/{next(numbers)}"
            there = shlex.quote(f"mkdir {dest} && tar xf - -C {dest}")
            _shell(f"tar cf - -C {source} . | {shlex.join(far.command)} {there}")

        (far.folder / "up").mkdir()
        return compare(subject, baseline, rounds=11)


def _fill(path: Path, size: int) -> None:
    block = os.urandom(1_000_000)
    with path.open("wb") as file:
        for _ in range(size // len(block)):
            file.write(block)


def _tree(folder: Path) -> dict[str, bytes | Path]:
    files: dict[str, bytes | Path] = {}
    for number in range(FILES):
        name = f"{number % 20}/{number}.py"
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"x" * (500 + number))
        files[name] = path
    return files


def _shell(line: str) -> None:
    subprocess.run(["sh", "-c", line], check=True)
