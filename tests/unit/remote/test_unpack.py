"""Of a tar stream only the files that were asked for are taken, as parts and nowhere else."""

from __future__ import annotations

import io
import os
import tarfile
from collections.abc import Iterable
from pathlib import Path

import pytest

from towline.models.tree import FileState
from towline.remote.files.parts import Parts
from towline.remote.files.unpack import Unpacker

REG, DIR, SYM, HARD = tarfile.REGTYPE, tarfile.DIRTYPE, tarfile.SYMTYPE, tarfile.LNKTYPE


def tar_of(members: Iterable[tuple[str, bytes, str | bytes]]) -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as tar:
        for name, kind, content in members:
            info = tarfile.TarInfo(name)
            info.type = kind
            if isinstance(content, str):
                info.linkname = content
                tar.addfile(info)
            else:
                info.size = len(content)
                tar.addfile(info, io.BytesIO(content))
    return stream.getvalue()


def unpack(folder: Path, data: bytes, asked: dict[str, int], piece: int = 777) -> dict[str, bytes]:
    """The files that arrived whole."""
    sources = {name: (f"/there/{name}", FileState(size, 5)) for name, size in asked.items()}
    unpacker = Unpacker(Parts(folder), sources, lambda count, whole: None)
    with unpacker:
        for start in range(0, len(data), piece):
            unpacker.feed(data[start : start + piece])
    return {name: Parts(folder).of(*sources[name]).read_bytes() for name in unpacker.whole}


def test_files_arrive_as_parts(tmp_path: Path) -> None:
    big = os.urandom(3 << 20)
    data = tar_of([("./d/big", REG, big), ("./e", REG, b""), ("./" + "ä" * 90 + "/x\n", REG, b"1")])
    asked = {"d/big": len(big), "e": 0, "ä" * 90 + "/x\n": 1}
    assert unpack(tmp_path, data, asked, 65536) == {"d/big": big, "e": b"", "ä" * 90 + "/x\n": b"1"}
    assert len(list(tmp_path.iterdir())) == 3


def test_what_was_not_asked_for_is_not_taken(tmp_path: Path) -> None:
    dest = tmp_path / "dest"
    dest.mkdir()
    data = tar_of(
        [
            ("../escape", REG, b"x"),
            (str(tmp_path / "absolute"), REG, b"x"),
            ("asked", SYM, "../.."),
            ("asked/out", REG, b"x"),
            ("hard", HARD, "/etc/passwd"),
            ("pipe", tarfile.FIFOTYPE, ""),
            ("device", tarfile.CHRTYPE, ""),
            ("other", REG, b"x"),
            ("good", REG, b"good"),
        ]
    )
    assert unpack(dest, data, {"asked": 6, "hard": 1, "pipe": 0, "device": 0, "good": 4}) == {"good": b"good"}
    assert [path.name for path in tmp_path.iterdir()] == ["dest"]
    assert len(list(dest.iterdir())) == 1


def test_a_part_is_not_written_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "parts").mkdir()
    Parts(tmp_path / "parts").of("/there/a", FileState(1, 5)).symlink_to(tmp_path / "outside")
    with pytest.raises(OSError, match="symbolic links"):
        unpack(tmp_path / "parts", tar_of([("a", REG, b"x")]), {"a": 1})
    assert not (tmp_path / "outside").exists()


def test_a_file_that_became_longer_is_taken_as_it_was_and_a_shorter_one_is_not(tmp_path: Path) -> None:
    data = tar_of([("longer", REG, b"12345"), ("shorter", REG, b"12"), ("same", REG, b"123")])
    assert unpack(tmp_path, data, {"longer": 3, "shorter": 3, "same": 3}) == {"longer": b"123", "same": b"123"}


def test_a_stream_that_breaks_off_leaves_a_part(tmp_path: Path) -> None:
    content = os.urandom(100_000)
    with pytest.raises((OSError, tarfile.TarError)):
        unpack(tmp_path, tar_of([("file", REG, content)])[:50_000], {"file": 100_000})
    assert content.startswith(Parts(tmp_path).of("/there/file", FileState(100_000, 5)).read_bytes())


def test_an_error_of_the_caller_is_passed_on(tmp_path: Path) -> None:
    with pytest.raises(KeyError), Unpacker(Parts(tmp_path), {}, lambda count, whole: None):
        raise KeyError
