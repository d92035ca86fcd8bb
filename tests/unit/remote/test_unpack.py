"""A tree made by a job is brought home whole, and nothing of it lands elsewhere."""

from __future__ import annotations

import io
import os
import tarfile
from collections.abc import Iterable
from pathlib import Path

import pytest

from towline.remote.unpack import Unpacked, Unpacker
from towline.storage.results import admit_member


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


def unpack(dest: Path, data: bytes, piece: int = 777) -> Unpacked:
    unpacker = Unpacker(dest, admit_member, lambda count, whole: None)
    with unpacker:
        for start in range(0, len(data), piece):
            unpacker.feed(data[start : start + piece])
    return unpacker.unpacked


REG, DIR, SYM, HARD = tarfile.REGTYPE, tarfile.DIRTYPE, tarfile.SYMTYPE, tarfile.LNKTYPE


def test_files_directories_and_links_arrive(tmp_path: Path) -> None:
    big = os.urandom(3 << 20)
    data = tar_of(
        [("./d", DIR, b""), ("./d/big", REG, big), ("./l", SYM, "d/big"), ("./h", HARD, "./d/big"), ("./e", REG, b"")]
    )
    done = unpack(tmp_path / "new" / "dest", data, 65536)
    dest = tmp_path / "new" / "dest"
    assert (dest / "d/big").read_bytes() == (dest / "l").read_bytes() == (dest / "h").read_bytes() == big
    assert (done.files, done.bytes, done.refused) == (3, len(big), [])
    assert sorted(path.name for path in dest.iterdir()) == ["d", "e", "h", "l"]


def test_what_would_land_elsewhere_is_refused_and_the_rest_arrives(tmp_path: Path) -> None:
    data = tar_of(
        [
            ("../escape", REG, b"x"),
            (str(tmp_path / "absolute"), REG, b"x"),
            ("way", SYM, "../.."),
            ("way/out", REG, b"inside"),
            ("pipe", tarfile.FIFOTYPE, ""),
            ("hard", HARD, "/etc/passwd"),
            ("ghost", HARD, "nosuch"),
            ("good", REG, b"good"),
        ]
    )
    dest = tmp_path / "dest"
    done = unpack(dest, data)
    assert (dest / "good").read_bytes() == b"good"
    assert (dest / "way/out").read_bytes() == b"inside"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["dest"]
    assert len(done.refused) == 6


def test_no_file_is_written_through_a_link_of_the_tree_or_of_the_destination(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    dest = tmp_path / "dest"
    dest.mkdir()
    (dest / "sub").symlink_to(outside)
    with pytest.raises(OSError, match="is a link"):
        unpack(dest, tar_of([("sub/file", REG, b"x")]))
    assert list(outside.iterdir()) == []


def test_a_file_is_replaced_whole_and_never_seen_in_part(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"old")
    data = tar_of([("file", REG, b"n" * 100_000)])
    with pytest.raises((OSError, tarfile.TarError)):
        unpack(tmp_path, data[:50_000])
    assert (tmp_path / "file").read_bytes() == b"old"
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
    unpack(tmp_path, data)
    assert (tmp_path / "file").read_bytes() == b"n" * 100_000


def test_rights_to_be_someone_else_do_not_arrive(tmp_path: Path) -> None:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as tar:
        info = tarfile.TarInfo("tool")
        info.mode = 0o6777
        tar.addfile(info)
    unpack(tmp_path, stream.getvalue())
    assert (tmp_path / "tool").stat().st_mode & 0o7777 == 0o755


def test_an_error_of_the_caller_is_passed_on(tmp_path: Path) -> None:
    with pytest.raises(KeyError), Unpacker(tmp_path, admit_member, lambda count, whole: None):
        raise KeyError


def test_the_destination_itself_may_be_a_link(tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    (tmp_path / "dest").symlink_to(tmp_path / "disk")
    unpack(tmp_path / "dest", tar_of([("./sub/file", REG, b"x")]))
    assert (tmp_path / "disk" / "sub" / "file").read_bytes() == b"x"
