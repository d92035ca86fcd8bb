"""Files up and down with a real shell as the other side; the cuts are made by what sits between."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from towline.models.errors import TransferFailed, UsageError
from towline.remote.base import Ending, Operation, Outcome, Sink
from towline.remote.files.transfer import Downloaded, Progress, Transfers
from towline.remote.local import Local


class Cut:
    """The local remote behind a connection that breaks after so many bytes of each answer."""

    def __init__(self, *after: int) -> None:
        self.calls = 0
        self._after = list(after)
        self._local = Local()

    async def run(self, operation: Operation, *, sink: Sink | None = None) -> Outcome:
        self.calls += 1
        if not self._after or sink is None:
            return await self._local.run(operation, sink=sink)
        got = bytearray()
        outcome = await self._local.run(operation, sink=got.extend)
        sink(bytes(got[: self._after.pop(0)]))
        return Outcome(Ending.UNKNOWN, host=outcome.host, detail="the connection was lost")

    async def close(self) -> None:
        return


def upload(files: Mapping[str, bytes | Path], into: Path, progress: Progress | None = None) -> int:
    return asyncio.run(Transfers(Local()).upload(files, str(into), progress=progress))


def tree(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


FILES = {"a": b"1", "d/e/f": b"\0\xff", ".hidden/x": b"", "d/-n": b"2", "two words/it's": b"3", "ä" * 60: b"4"}


def test_files_appear_below_a_new_directory(tmp_path: Path) -> None:
    into = tmp_path / "new and\nodd"
    large = tmp_path / "large"
    large.write_bytes(os.urandom(3_000_000))
    upload({**FILES, "large": large}, into)
    assert tree(into) == {**FILES, "large": large.read_bytes()}
    assert sorted(path.name for path in tmp_path.iterdir()) == ["large", into.name]


def test_files_replace_older_ones_and_leave_the_others(tmp_path: Path) -> None:
    upload({"a": b"old", "d/kept": b"kept"}, tmp_path / "into")
    upload(FILES, tmp_path / "into")
    assert tree(tmp_path / "into") == {**FILES, "d/kept": b"kept"}
    assert [path.name for path in tmp_path.iterdir()] == ["into"]


def test_an_upload_tells_how_far_it_is(tmp_path: Path) -> None:
    told: list[tuple[int, int]] = []
    upload({"a": bytes(2_000_000)}, tmp_path / "into", lambda done, total: told.append((done, total)))
    assert told == sorted(told)
    assert told[-1] == (2_000_000, 2_000_000)


def test_an_upload_that_finds_no_place_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "into").write_text("a file")
    with pytest.raises(TransferFailed, match="could not be put into"):
        upload(FILES, tmp_path / "into")
    with pytest.raises(TransferFailed) as caught:
        upload(FILES, tmp_path / "missing" / "deep")
    assert "missing" in caught.value.why
    assert tree(tmp_path) == {"into": b"a file"}


def test_a_local_file_that_cannot_be_sent_is_told_and_nothing_is(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    for name in ("missing", "folder"):
        with pytest.raises(TransferFailed, match=f"{name} cannot be sent"):
            upload({"a": b"1", "b": tmp_path / name}, tmp_path / "into")
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]


@pytest.mark.parametrize("where", ["relative", "/with\nnewline", "/outer space "])
def test_a_place_that_cannot_be_told_is_refused(where: str) -> None:
    with pytest.raises(UsageError):
        asyncio.run(Local().run(Operation("x", "true", where=where)))


def test_a_file_comes_home_with_its_time(tmp_path: Path) -> None:
    source, dest = tmp_path / "it's a\nsource", tmp_path / "home" / "file"
    source.write_bytes(os.urandom(1_000_000))
    os.utime(source, (1_000_000_000, 1_000_000_000))
    told: list[tuple[int, int]] = []
    found = asyncio.run(
        Transfers(Local()).download(str(source), dest, progress=lambda done, total: told.append((done, total)))
    )
    assert found == Downloaded(1_000_000, 1_000_000)
    assert dest.read_bytes() == source.read_bytes()
    assert dest.stat().st_mtime == 1_000_000_000
    assert told[-1] == (1_000_000, 1_000_000)
    assert [path.name for path in dest.parent.iterdir()] == ["file"]


def test_an_empty_file_comes_home(tmp_path: Path) -> None:
    (tmp_path / "source").touch()
    assert asyncio.run(Transfers(Local()).download(str(tmp_path / "source"), tmp_path / "dest")) == Downloaded(0, 0)


def test_a_download_that_is_cut_goes_on_where_it_was(tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.write_bytes(os.urandom(1_000_000))
    remote = Cut(300_000, 40, 5, 300_000)
    found = asyncio.run(Transfers(remote).download(str(source), tmp_path / "dest"))
    assert found == Downloaded(1_000_000, 1_000_000)
    assert remote.calls == 5
    assert (tmp_path / "dest").read_bytes() == source.read_bytes()


def test_a_later_download_goes_on_where_an_earlier_one_gave_up(tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.write_bytes(os.urandom(1_000_000))
    with pytest.raises(TransferFailed, match="could not be brought home"):
        asyncio.run(Transfers(Cut(500_000, *[0] * 9)).download(str(source), tmp_path / "dest"))
    assert not (tmp_path / "dest").exists()
    found = asyncio.run(Transfers(Local()).download(str(source), tmp_path / "dest"))
    assert 500_000 < found.received < 510_000 or 490_000 < found.received <= 500_100
    assert (tmp_path / "dest").read_bytes() == source.read_bytes()


def test_a_source_that_changed_is_brought_home_from_its_beginning(tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.write_bytes(bytes(1_000_000))
    with pytest.raises(TransferFailed):
        asyncio.run(Transfers(Cut(500_000, *[0] * 9)).download(str(source), tmp_path / "dest"))
    source.write_bytes(os.urandom(900_000))
    assert asyncio.run(Transfers(Local()).download(str(source), tmp_path / "dest")).received == 900_000
    assert (tmp_path / "dest").read_bytes() == source.read_bytes()


def test_what_cannot_be_read_or_written_is_told(tmp_path: Path) -> None:
    with pytest.raises(TransferFailed) as caught:
        asyncio.run(Transfers(Local()).download(str(tmp_path / "missing"), tmp_path / "dest"))
    assert "is not a file that can be read" in caught.value.why
    (tmp_path / "source").write_text("x")
    (tmp_path / "blocked").touch()
    with pytest.raises(TransferFailed, match="could not be written"):
        asyncio.run(Transfers(Local()).download(str(tmp_path / "source"), tmp_path / "blocked" / "dest"))


@pytest.mark.parametrize(
    ("path", "there"),
    [
        ("/lustre/me/x", "/data/me/x"),
        ("/lustre", "/data"),
        ("/lustre/scratch/x", "/fast/x"),
        ("/lustrous/x", "/lustrous/x"),
        ("/home/x", "/home/x"),
    ],
)
def test_paths_as_the_host_for_transfers_has_them(path: str, there: str) -> None:
    assert Transfers(Local(), path_map={"/lustre/": "/data/", "/lustre/scratch": "/fast"}).there(path) == there


def test_mapped_paths_are_used(tmp_path: Path) -> None:
    transfers = Transfers(Local(), path_map={"/cluster": str(tmp_path)})
    asyncio.run(transfers.upload({"a": b"1"}, "/cluster/into"))
    asyncio.run(transfers.download("/cluster/into/a", tmp_path / "back"))
    assert (tmp_path / "back").read_bytes() == b"1"
