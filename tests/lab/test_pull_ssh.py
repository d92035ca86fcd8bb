"""Trees brought home over a real sshd: by rsync or as a stream, through cuts, onto a full disk."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.lab.sshd import Server
from tests.lab.test_remote_ssh import Start, folder, start
from towline.models.tree import Tree
from towline.remote.base import Operation
from towline.remote.files.transfer import Transfers
from towline.remote.files.tree import FOLDER, TreePull, TreeReport
from towline.remote.ssh.openssh import OpenSSH
from towline.storage.results import parse_tree
from towline.storage.scripts import script

__all__ = ["folder", "start"]

FILES = 1100
NEEDED = (
    *("cat", "cmp", "find", "head", "mkdir", "mktemp", "rm", "setsid", "sh", "sleep"),
    *("stat", "tail", "tar", "wc", "xargs"),
)
"""All that a pull needs of the other side."""

Progress = Callable[[int, int, int, int], None]


@pytest.fixture
def root(folder: Path) -> Path:
    """A tree of many files on the other side."""
    made = folder / "job" / "results"
    for number in range(FILES):
        path = made / f"d{number % 7}" / f"f {number}\n"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"%d\0\xff" % number * (number % 300))
    return made


@pytest.fixture
def small_disk(folder: Path) -> Iterator[Path]:
    """A place here with room for 30 MB."""
    place = folder / "small"
    place.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=30m", "none", place], check=True)
    yield place
    subprocess.run(["umount", place], check=True)


def pull(server: Server, root: Path, dest: Path, progress: Progress | None = None) -> TreeReport:
    client = server.client()

    async def scene() -> TreeReport:
        report = await TreePull(Transfers(client), str(root), dest, progress).run(lambda: look(client, root))
        await client.close()
        return report

    return asyncio.run(asyncio.wait_for(scene(), 120))


async def look(client: OpenSSH, root: Path) -> Tree:
    outcome = await client.run(Operation("list", script("list-results"), (str(root),)))
    assert outcome.ok, outcome
    return parse_tree(outcome.stdout)


def assert_same(one: Path, other: Path) -> None:
    subprocess.run(["diff", "-r", one, other], check=True)


CHATTY = "ForceCommand echo 'hello 12345'; echo sorry >&2; exec {} -c \"$SSH_ORIGINAL_COMMAND\""


@pytest.mark.parametrize(
    "settings", [(), (CHATTY.format("tcsh"),), ("MaxSessions 1",)], ids=["bash", "chatty-tcsh", "one-channel"]
)
def test_many_files_come_by_rsync_over_the_same_login(
    start: Start, folder: Path, root: Path, settings: tuple[str, ...]
) -> None:
    server = start(*settings)
    told: list[tuple[int, int]] = []

    def progress(files: int, total: int, _done: int, _bytes: int) -> None:
        told.append((files, total))

    home = folder / "it's home"
    report = pull(server, root, home, progress)
    assert report.way == f"rsync: {FILES} files"
    assert_same(root, home)
    assert told[-1] == (FILES, FILES)
    assert pull(server, root, home).kept == FILES
    assert server.logins == 1


def test_without_rsync_on_the_other_side_they_come_as_a_stream(start: Start, folder: Path, root: Path) -> None:
    tools = folder / "tools"
    tools.mkdir()
    for name in NEEDED:
        (tools / name).symlink_to(str(shutil.which(name)))
    server = start(f"SetEnv TMPDIR=/tmp PATH={tools}")
    report = pull(server, root, folder / "home")
    assert report.way == "tar: there is no rsync on the other side's PATH"
    assert_same(root, folder / "home")
    assert server.logins == 1


def test_of_a_large_file_only_what_is_new_comes(start: Start, folder: Path, root: Path) -> None:
    server = start()
    large = root / "large"
    large.write_bytes(os.urandom(20_000_000))
    pull(server, root, folder / "home")
    with large.open("r+b") as file:
        file.seek(10_000_000)
        file.write(b"new")
    later = large.stat().st_mtime + 10
    os.utime(large, (later, later))  # times are compared by the second
    report = pull(server, root, folder / "home")
    assert report.way == "rsync: of 1 files only what is new"
    assert report.received < 2_000_000
    assert_same(root, folder / "home")


@pytest.mark.parametrize("large", [0, 40_000_000], ids=["by-rsync", "by-offset"])
def test_a_pull_goes_on_after_a_cut(start: Start, folder: Path, root: Path, large: int) -> None:
    server = start()
    if large:
        shutil.rmtree(root / "d0")
    (root / "large").write_bytes(os.urandom(large))
    cut = False

    def progress(_files: int, _total: int, done: int, total: int) -> None:
        nonlocal cut
        if not cut and done > total / 3:
            cut = True
            server.cut()

    report = pull(server, root, folder / "home", progress)
    assert cut
    assert_same(root, folder / "home")
    assert server.logins == 2
    assert report.received < (large + 10_000_000)
    assert not (folder / "home" / FOLDER).exists()


def test_a_disk_that_fills_up_leaves_no_file_in_part(start: Start, folder: Path, root: Path, small_disk: Path) -> None:
    server = start()
    shutil.rmtree(root)
    root.mkdir()
    (root / "large").write_bytes(os.urandom(20_000_000))
    home, filler = small_disk / "home", small_disk / "filler"

    def fill(_files: int, _total: int, done: int, _bytes: int) -> None:
        if done and not filler.exists():
            filler.write_bytes(bytes(12_000_000))

    with pytest.raises(Exception, match="No space left"):
        pull(server, root, home, fill)
    assert [path.name for path in home.iterdir()] == [FOLDER]
    with pytest.raises(Exception, match="has no room"):
        pull(server, root, home)
    filler.unlink()
    assert pull(server, root, home).received < 20_000_000
    assert_same(root, home)
