"""Files brought to the cluster and home again: by rsync or as a stream, through cuts, and only what is new."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.lab.login import on_login
from tests.lab.sshd import Server
from tests.lab.terminal import Terminal
from tests.lab.test_pull_ssh import NEEDED, assert_same
from tests.lab.test_remote_ssh import Start, folder, start
from towline.config.profile import ClusterProfile
from towline.engine.events import Progress
from towline.engine.session import Session
from towline.engine.staging import pulling, pushing
from towline.engine.staging.pushing import Pushed
from towline.engine.store import Store
from towline.lab import Lab

__all__ = ["folder", "start"]

FILES = 1100


@pytest.fixture
def tree(folder: Path) -> Path:
    made = folder / "it's [data]"
    for number in range(FILES):
        path = made / f"d{number % 7}" / f"f {number}\n"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"%d\0\xff" % number * (number % 300))
    (made / "d0" / "link").symlink_to("../large")
    (made / "large").write_bytes(os.urandom(80_000_000))
    return made


def push(server: Server, tree: Path, told: Callable[[Progress], None] | None = None) -> Pushed:
    client = server.client()
    profile = ClusterProfile(name="far", hosts=("far",), root=str(server.folder / "root"))
    store = Store(server.folder / "state")

    async def scene() -> Pushed:
        session = Session(profile, client, store)
        done = await pushing.push(session, tree, "", told)
        home = server.folder / "home"
        await pulling.pull(session, tree.name, home, None)
        assert_same(tree, home)
        await client.close()
        return done

    done = asyncio.run(asyncio.wait_for(scene(), 170))
    store.close()
    assert_same(tree, Path(done.place))
    return done


@pytest.mark.parametrize("with_rsync", [True, False], ids=["rsync", "tar"])
def test_a_tree_is_there_and_comes_home_and_only_news_are_sent(
    start: Start, folder: Path, tree: Path, with_rsync: bool
) -> None:
    tools = folder / "tools"
    tools.mkdir()
    for name in (*NEEDED, *("awk", "chmod", "df", "id", "mv", "sha256sum", "touch", "truncate")):
        (tools / name).symlink_to(str(shutil.which(name)))
    server = start() if with_rsync else start(f"SetEnv TMPDIR=/tmp PATH={tools}")
    first = push(server, tree)
    assert first.way.startswith("rsync: " if with_rsync else "tar: there is no rsync on the other side's PATH")
    assert (first.files, first.kept) == (FILES + 1, 0)
    (tree / "d1" / "new").write_text("new")
    (tree / "d2" / "f 2\n").write_text("another")
    second = push(server, tree)
    assert second.kept == FILES
    assert second.sent < 100_000
    assert push(server, tree).way == "nothing was missing"
    assert server.logins == 1


def test_a_push_goes_on_after_a_cut(start: Start, tree: Path) -> None:
    server = start()
    cut = False

    def told(progress: Progress) -> None:
        nonlocal cut
        if not cut and progress.bytes_done > progress.bytes_total * 0.6:
            cut = True
            server.cut()

    done = push(server, tree, told)
    assert cut
    assert done.sent < 140_000_000
    assert server.logins == 2


def test_a_dataset_is_pushed_mounted_and_pulled(lab: Lab, tmp_path: Path) -> None:
    towline = Terminal(tmp_path / "state")
    data = tmp_path / "set"
    (data / "sub").mkdir(parents=True)
    (data / "a").write_text("one\n")
    (data / "sub" / "b.tmp").write_text("two\n")
    (data / ".towlineignore").write_text("*.tmp\n")
    pushed = towline("push", str(data), f"sets/{tmp_path.name}")
    assert pushed.code == 0, pushed
    place = pushed.out.strip()
    listed = on_login(lab, "find", place, "-type", "f", "-printf", "%P\n").stdout
    assert sorted(listed.split()) == [".towlineignore", "a"]
    job = towline("run", "--input", f"/data=lustre://{place}", "--", "cat", "/data/a")
    assert (job.code, job.out) == (0, "one\n"), job
    jobs = on_login(lab, "ls", f"{place.rpartition('/data/')[0]}/jobs").stdout
    wrong = towline("run", "--input", f"/a=lustre://{place}-1", "--input", f"/b=slurm:/{place}-2", "--", "x")
    assert wrong.code != 0
    assert f"{place}-1" in wrong.err
    assert f"{place}-2" in wrong.err
    assert on_login(lab, "ls", f"{place.rpartition('/data/')[0]}/jobs").stdout == jobs
    file = towline("pull", f"{place}/a", str(tmp_path / "home"))
    assert file.code == 0, file
    assert (tmp_path / "home").read_text() == "one\n"
    refused = towline("push", str(data), "/etc/set")
    assert refused.code != 0
    assert "cannot be made" in refused.err
    missing = towline("pull", f"{place}/nothing")
    assert missing.code != 0
    assert "cannot be found" in missing.err
