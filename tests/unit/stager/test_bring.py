"""Bringing files: checked, whole, and going on where an earlier job was cut off."""

from __future__ import annotations

import hashlib
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from towline.stager import bring
from towline.stager.bring import Bringing, Meter, check_names
from towline.stager.problems import Problem
from towline.stager.source import Entry, Found, Reader, Source


class Bytes(Reader):
    """A body that breaks off after so many bytes."""

    def __init__(self, content: bytes, breaks_after: int) -> None:
        self._content, self._left = content, breaks_after

    def read(self, size: int = -1) -> bytes:
        if self._left <= 0:
            raise Problem("network", "the connection was lost")
        piece, self._content = self._content[: min(size, self._left)], self._content[min(size, self._left) :]
        self._left -= len(piece) or self._left
        return piece

    def close(self) -> None:
        pass


class Shelf(Source):
    """Files in memory; each connection gives `breaks_after` bytes at most."""

    def __init__(self, files: dict[str, bytes], breaks_after: int = 1 << 30) -> None:
        self.files, self.breaks_after = files, breaks_after
        self.opened: list[tuple[str, int]] = []

    def find(self) -> Found:
        kind = "file" if "" in self.files else "directory"
        stamps = {path: f"sha256:{hashlib.sha256(content).hexdigest()}" for path, content in self.files.items()}
        return Found(kind, [Entry(path, len(self.files[path]), stamp, path) for path, stamp in stamps.items()])

    def open(self, entry: Entry, offset: int) -> Reader:
        self.opened.append((entry.path, offset))
        return Bytes(self.files[entry.handle][offset:], self.breaks_after)


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """No pause between two tries of a file."""
    monkeypatch.setattr(bring, "PAUSE", 0.0)


def brought(source: Shelf, folder: Path) -> dict[str, bytes]:
    folder.mkdir(exist_ok=True)
    Bringing(source, str(folder), Meter("")).all(source.find())
    data = folder / "data"
    if data.is_file():
        return {"": data.read_bytes()}
    return {str(path.relative_to(data)): path.read_bytes() for path in data.rglob("*") if path.is_file()}


NAMES = st.lists(st.text(st.sampled_from("ab é."), min_size=1, max_size=3), min_size=1, max_size=2).map("/".join)


@settings(deadline=None, max_examples=50)
@given(st.dictionaries(NAMES, st.binary(max_size=50), min_size=1, max_size=6))
def test_what_is_brought_is_what_the_source_has(files: dict[str, bytes]) -> None:
    source = Shelf(files)
    with tempfile.TemporaryDirectory() as folder:
        try:
            found = brought(source, Path(folder))
        except Problem as problem:
            found = problem.kind
        assert found in (files, "names")


def test_one_file_is_a_file(tmp_path: Path) -> None:
    assert brought(Shelf({"": b"one"}), tmp_path / "part") == {"": b"one"}


def test_a_connection_that_breaks_is_gone_on_with(tmp_path: Path) -> None:
    source = Shelf({"a": b"0123456789" * 3}, breaks_after=10)
    assert brought(source, tmp_path / "part") == source.files
    assert source.opened == [("a", 0), ("a", 10), ("a", 20)]


def test_the_next_job_goes_on_where_one_was_cut_off(tmp_path: Path) -> None:
    files = {"a": b"a" * 100, "b": b"b" * 100}

    class Dying(Shelf):
        def open(self, entry: Entry, offset: int) -> Reader:
            self.breaks_after = 10 if offset < 60 else 0
            return super().open(entry, offset)

    with pytest.raises(Problem) as cut:
        brought(Dying(files), tmp_path / "part")
    assert cut.value.kind == "network"
    source = Shelf(files)
    assert brought(source, tmp_path / "part") == files
    assert 60 in {offset for _, offset in source.opened}
    again = Shelf(files)
    assert brought(again, tmp_path / "part") == files
    assert again.opened == []


def test_files_of_a_state_that_is_no_more_are_taken_away(tmp_path: Path) -> None:
    brought(Shelf({"old/a": b"1", "same": b"s"}), tmp_path / "part")
    source = Shelf({"new": b"2", "same": b"s"})
    assert brought(source, tmp_path / "part") == source.files
    assert [path for path, _ in source.opened] == ["new"]


def test_what_is_damaged_on_the_way_does_not_get_its_name(tmp_path: Path) -> None:
    class Liar(Shelf):
        def open(self, entry: Entry, offset: int) -> Reader:
            return Bytes(b"x" * len(self.files[entry.handle]), 100)

    with pytest.raises(Problem) as damaged:
        brought(Liar({"a": b"good"}), tmp_path / "part")
    assert damaged.value.kind == "damaged"
    assert not (tmp_path / "part" / "data" / "a").exists()


@pytest.mark.parametrize("path", ["../a", "/a", "a//b", "a/./b", "a\nb", "a/" + "x" * 256, ""])
def test_a_source_cannot_write_elsewhere(path: str) -> None:
    with pytest.raises(Problem) as refused:
        check_names(Found("directory", [Entry(path, 1, "etag:1")]))
    assert refused.value.kind == "names"


def test_a_name_that_is_file_and_directory_is_refused() -> None:
    with pytest.raises(Problem, match="a file and a directory at once"):
        check_names(Found("directory", [Entry("a", 1, "etag:1"), Entry("a/b", 1, "etag:2")]))


def test_too_little_room_is_told_before_the_first_byte(tmp_path: Path) -> None:
    source = Shelf({"a": b"1"})
    huge = Found("directory", [Entry("a", 1 << 60, "etag:1", "a")])
    (tmp_path / "part").mkdir()
    with pytest.raises(Problem) as full:
        Bringing(source, str(tmp_path / "part"), Meter("")).all(huge)
    assert full.value.kind == "space"
    assert source.opened == []
