"""Trees brought home with a real shell as the other side; what happens on the way is made by what sits between."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from towline.models.errors import TransferFailed
from towline.models.tree import Tree
from towline.remote.base import Ending, Operation, Outcome, Remote, Sink
from towline.remote.files import tree as module
from towline.remote.files.parts import Parts, claimed
from towline.remote.files.transfer import Transfers
from towline.remote.files.tree import FOLDER, TreePull, TreeReport
from towline.remote.local import Local
from towline.storage.results import admit, parse_tree
from towline.storage.scripts import script

Step = Callable[[], object]


class Between:
    """The local remote with events on the way.

    Args:
        cuts: bytes of the answer of each sending operation after which the connection breaks; None lets it be.
        during: done once the first byte of a sending operation arrived.
    """

    def __init__(self, *cuts: int | None, during: list[Step] | None = None) -> None:
        self.calls = 0
        self.asked: list[Operation] = []
        self._cuts = list(cuts)
        self._during = during or []
        self._local = Local()

    async def run(self, operation: Operation, *, sink: Sink | None = None) -> Outcome:
        self.calls += 1
        if sink is None:
            return await self._local.run(operation)
        self.asked.append(operation)
        got = bytearray()

        def take(data: bytes) -> None:
            if not got and self._during:
                self._during.pop(0)()
            got.extend(data)

        outcome = await self._local.run(operation, sink=take)
        cut = self._cuts.pop(0) if self._cuts else None
        sink(bytes(got[:cut]))
        return outcome if cut is None else Outcome(Ending.UNKNOWN, detail="the connection was lost")

    async def close(self) -> None:
        return

    def names(self) -> set[str]:
        """What was asked for in streams."""
        wanted = [operation.files["wanted"] for operation in self.asked if operation.files]
        return {name for each in wanted if isinstance(each, bytes) for name in each.decode().split("\0") if name}


async def listed(root: Path) -> Tree:
    outcome = await Local().run(Operation("list", script("list-results"), (str(root),)))
    assert outcome.ok, outcome
    return admit(parse_tree(outcome.stdout), FOLDER)[0]


def pull(root: Path, dest: Path, remote: Remote | None = None) -> TreeReport:
    transfers = Transfers(remote or Local())
    return asyncio.run(TreePull(transfers, str(root), dest).run(lambda: listed(root)))


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A tree on the other side."""
    folder = tmp_path / "job" / "results"
    for name in ("a", "d/e/f", ".hidden/x", "d/-n", "two words/it's\n", "ä" * 60):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(os.urandom(1000))
        os.utime(path, ns=(10**18, 10**18 + 123_456_789))
    (folder / "empty").mkdir()
    (folder / "nothing").touch()
    (folder / "link").symlink_to("d/e/f")
    os.link(folder / "a", folder / "d" / "same")
    return folder


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sizes at which files come alone, so that a test need not write gigabytes."""
    monkeypatch.setattr(module, "_ALONE", 100_000)
    monkeypatch.setattr(module, "_RESUMED", 10_000)


def test_everything_comes_home_with_its_time_and_mode(root: Path, tmp_path: Path) -> None:
    (root / "d" / "-n").chmod(0o4777)
    report = pull(root, tmp_path / "new" / "home")
    home = tmp_path / "new" / "home"
    assert contents(home) == contents(root)
    assert (home / "link").readlink() == Path("d/e/f")
    assert (home / "empty").is_dir()
    assert (home / "a").stat().st_mtime_ns == (root / "a").stat().st_mtime_ns
    assert (home / "d" / "-n").stat().st_mode & 0o7777 == 0o755
    assert not (home / FOLDER).exists()
    assert (report.received, report.kept, report.grown, report.unreadable) == (6000, 0, (), {})


def test_what_is_here_is_not_asked_for_again(root: Path, tmp_path: Path) -> None:
    pull(root, tmp_path / "home")
    (root / "a").write_bytes(b"newer")
    (tmp_path / "home" / "d" / "-n").unlink()
    (tmp_path / "home" / "own").write_text("of mine")
    remote = Between()
    report = pull(root, tmp_path / "home", remote)
    assert remote.names() == {"./a", "./d/-n"}
    assert contents(tmp_path / "home") == {**contents(root), "own": b"of mine"}
    assert report.kept == len(report.tree.files) - 3
    idle = Between()
    assert pull(root, tmp_path / "home", idle).received == 0
    assert idle.asked == []


def test_a_cut_stream_goes_on_with_what_is_missing(root: Path, tmp_path: Path) -> None:
    remote = Between(5000, 40, 9000)
    report = pull(root, tmp_path / "home", remote)
    assert contents(tmp_path / "home") == contents(root)
    assert len(remote.asked) == 4
    assert report.received < 12_000


@pytest.mark.usefixtures("small")
def test_a_large_file_goes_on_by_offset_in_the_same_call_and_in_a_later_one(root: Path, tmp_path: Path) -> None:
    (root / "large").write_bytes(os.urandom(1_000_000))
    with pytest.raises(TransferFailed, match="could not be brought home"):
        pull(root, tmp_path / "home", Between(None, 300_000, 300_000, *[0] * 9))
    assert not (tmp_path / "home" / "large").exists()
    assert (tmp_path / "home" / "a").exists()
    report = pull(root, tmp_path / "home")
    assert 390_000 < report.received < 410_000
    assert contents(tmp_path / "home") == contents(root)


@pytest.mark.usefixtures("small")
def test_a_killed_pull_leaves_nothing_for_ever(root: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    (root / "large").write_bytes(os.urandom(1_000_000))
    (root / "gone").write_bytes(os.urandom(200_000))
    parts = Parts(home / FOLDER)
    parts.folder.mkdir(parents=True)
    states = {each.path: each.state for each in asyncio.run(listed(root)).files}
    for name in ("large", "gone"):
        source = str(root / name)
        parts.of(source, states[name]).write_bytes((root / name).read_bytes()[:150_000])
    whole = parts.of(str(root / "d/e/f"), states["d/e/f"])
    whole.write_bytes((root / "d/e/f").read_bytes())
    (root / "gone").unlink()
    remote = Between()
    report = pull(root, home, remote)
    assert report.received == 850_000 + 5000
    assert "./d/e/f" not in remote.names()
    assert contents(home) == contents(root)
    assert not parts.folder.exists()


def test_a_part_of_an_older_content_is_not_used(root: Path, tmp_path: Path) -> None:
    state = {each.path: each.state for each in asyncio.run(listed(root)).files}["a"]
    parts = Parts(tmp_path / "home" / FOLDER)
    parts.folder.mkdir(parents=True)
    parts.of(str(root / "a"), state).write_bytes(bytes(1000))
    (root / "a").write_bytes(b"b" * 1000)
    pull(root, tmp_path / "home")
    assert contents(tmp_path / "home") == contents(root)


# --- What changes while it is read ---


def test_a_file_that_grows_is_brought_as_it_was(root: Path, tmp_path: Path) -> None:
    before = (root / "a").read_bytes()

    def grow() -> None:
        with (root / "a").open("ab") as file:
            file.write(b"more")

    report = pull(root, tmp_path / "home", Between(during=[grow]))
    assert (tmp_path / "home" / "a").read_bytes() == before
    assert report.grown == ("a",)


@pytest.mark.usefixtures("small")
def test_a_large_file_that_grows_is_brought_as_it_was(root: Path, tmp_path: Path) -> None:
    log = root / "log"
    log.write_bytes(bytes(5_000_000))

    def grow() -> None:
        with log.open("ab") as file:
            file.write(b"more")

    report = pull(root, tmp_path / "home", Between(during=[lambda: None, grow]))
    assert (tmp_path / "home" / "log").read_bytes() == bytes(5_000_000)
    assert report.grown == ("log",)


def test_a_file_that_is_rewritten_while_it_is_read_is_read_again(root: Path, tmp_path: Path) -> None:
    report = pull(root, tmp_path / "home", Between(during=[lambda: (root / "d/-n").write_bytes(b"short")]))
    assert contents(tmp_path / "home") == contents(root)
    assert report.grown == ()


@pytest.mark.usefixtures("small")
def test_a_file_that_is_rewritten_again_and_again_is_an_error_and_not_here(root: Path, tmp_path: Path) -> None:
    (root / "large").write_bytes(bytes(5_000_000))
    sizes = iter(range(4_900_000, 4_000_000, -1))

    def change() -> None:
        (root / "large").write_bytes(bytes(next(sizes)))

    with pytest.raises(TransferFailed, match="changed while they were read") as caught:
        pull(root, tmp_path / "home", Between(during=[lambda: None, *[change] * 9]))
    assert "large" in caught.value.why
    assert not (tmp_path / "home" / "large").exists()
    assert (tmp_path / "home" / "a").exists()


def test_a_file_that_vanishes_is_not_here(root: Path, tmp_path: Path) -> None:
    remote = Between(during=[(root / "d" / "-n").unlink])
    pull(root, tmp_path / "home", remote)
    assert contents(tmp_path / "home") == contents(root)


@pytest.mark.parametrize("size", [1000, 4_000_000])
@pytest.mark.usefixtures("small")
def test_what_is_here_of_a_file_that_is_rewritten_longer_is_never_of_both(
    root: Path, tmp_path: Path, size: int
) -> None:
    (root / "a").write_bytes(bytes(size))
    rewrite: Step = lambda: (root / "a").write_bytes(b"b" * size + b"more")  # noqa: E731
    pull(root, tmp_path / "home", Between(during=[*([lambda: None] if size > 1000 else []), rewrite]))
    assert len(set(contents(tmp_path / "home")["a"].rstrip(b"more"))) == 1


# --- What cannot be ---


def test_no_file_is_written_through_a_link_at_the_destination(root: Path, tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "d").symlink_to(tmp_path / "outside")
    with pytest.raises(OSError, match="is a link"):
        pull(root, tmp_path / "home")
    assert contents(tmp_path / "outside") == {}


def test_the_destination_itself_may_be_a_link(root: Path, tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    (tmp_path / "home").symlink_to(tmp_path / "disk")
    pull(root, tmp_path / "home")
    assert contents(tmp_path / "disk") == contents(root)


def test_two_pulls_into_one_directory_do_not_mix(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("towline.remote.files.parts._LOOK_EVERY", 0)
    (tmp_path / "home").mkdir()

    async def while_another_has_it() -> None:
        async with claimed(tmp_path / "home"):
            await TreePull(Transfers(Local()), str(root), tmp_path / "home").run(lambda: listed(root))

    with pytest.raises(TransferFailed, match="another transfer"):
        asyncio.run(while_another_has_it())
    pull(root, tmp_path / "home")


def test_what_has_no_room_is_refused_before_it_is_asked_for(root: Path, tmp_path: Path) -> None:
    pull(root, tmp_path / "home")
    (root / "huge").touch()
    os.truncate(root / "huge", 1 << 43)
    remote = Between()
    with pytest.raises(TransferFailed, match="has no room"):
        pull(root, tmp_path / "home", remote)
    assert remote.asked == []
