"""A working tree of 5,000 files on its way to a cluster far away, against `rsync -a` over the same connection."""

from __future__ import annotations

import os
import shlex
import subprocess
from collections.abc import Callable
from itertools import count
from pathlib import Path

from harness.bench.far import Far, far_host
from harness.bench.registry import Reading, benchmark
from harness.bench.timing import compare
from towline.config.profile import ClusterProfile
from towline.engine.session import Session
from towline.engine.staging import code
from towline.engine.store import Store

FILES = 5_000


@benchmark("snapshot", unit="x", limit=1.2)
def first() -> Reading:
    """Time to bring 5,000 files to a cluster for the first time at 50 ms, against rsync."""
    with far_host() as far:
        tree = _tree(far.folder / "tree")
        numbers = count()

        def subject() -> None:
            _send(far, tree, next(numbers))

        return compare(subject, lambda: _rsync(far, tree, next(numbers)), rounds=5)


@benchmark("snapshot-again", unit="x", limit=0.5)
def again() -> Reading:
    """Time when nothing has changed since, against rsync's second run."""
    return _second(lambda _: None)


@benchmark("snapshot-changed", unit="x", limit=0.5)
def changed() -> Reading:
    """Time when one file has changed since, against rsync's."""
    numbers = count()

    def change(tree: Path) -> None:
        (tree / "7" / "7.py").write_text(f"changed {next(numbers)}\n")

    return _second(change)


def _second(change: Callable[[Path], None]) -> Reading:
    with far_host() as far:
        tree = _tree(far.folder / "tree")
        _send(far, tree, 0)

        def subject() -> None:
            change(tree)
            _send(far, tree, 0)

        def baseline() -> None:
            change(tree)
            _rsync(far, tree, 1)

        return compare(subject, baseline, rounds=11)


def _send(far: Far, tree: Path, number: int) -> None:
    """All that `--code` takes, but for the start of the process."""
    profile = ClusterProfile(name="far", hosts=("far",), root=f"{far.folder}/root-{number}")
    store = Store(far.folder / f"state-{number}")
    session = Session(profile, far.client, store)

    async def both() -> None:
        await code.bring(session, await code.look(session, str(tree)))

    far.run(both())
    store.close()


def _rsync(far: Far, tree: Path, number: int) -> None:
    *ssh, host = far.command
    subprocess.run(
        ["rsync", "-a", "-e", shlex.join(ssh), f"{tree}/", f"{host}:{far.folder}/rsync-{number}/"], check=True
    )


def _tree(folder: Path) -> Path:
    for number in range(FILES):
        path = folder / str(number % 50) / f"{number}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(os.urandom(8).hex().encode() * (number % 500))
    subprocess.run(["git", "-C", str(folder), "init", "-q"], check=True)
    subprocess.run(["git", "-C", str(folder), "add", "."], check=True)
    names = [option for key in ("user.name", "user.email") for option in ("-c", f"{key}=bench")]
    subprocess.run(["git", "-C", str(folder), *names, "commit", "-q", "-m", "all"], check=True)
    return folder
