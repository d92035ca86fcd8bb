"""Results that go to another place of the shared file system."""

from __future__ import annotations

import errno
import os
import shutil
from pathlib import Path

import pytest

from towline.stager.copying import copy_all
from towline.stager.problems import Problem


@pytest.fixture
def made(tmp_path: Path) -> Path:
    made = tmp_path / "made"
    (made / "a").mkdir(parents=True)
    (made / "a" / "w").write_bytes(b"weights")
    (made / "b").write_bytes(b"b")
    (made / "link").symlink_to("/etc/passwd")
    return made


def test_what_is_there_stays_and_what_changed_is_copied_again(made: Path, tmp_path: Path) -> None:
    goal = tmp_path / "goal"
    assert copy_all(str(made), str(goal)) == (2, 8)
    kept = (goal / "a" / "w").stat().st_ino
    (made / "b").write_bytes(b"new")
    assert copy_all(str(made), str(goal)) == (2, 10)
    assert (goal / "a" / "w").stat().st_ino == kept
    assert (goal / "b").read_bytes() == b"new"
    assert not (goal / "link").exists()


def test_a_file_keeps_its_name_in_a_directory_that_is_named_as_one(made: Path, tmp_path: Path) -> None:
    copy_all(str(made / "b"), f"{tmp_path}/goal/3/")
    assert (tmp_path / "goal" / "3" / "b").read_bytes() == b"b"


def test_without_room_nothing_is_begun(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def nearly_full(_: str) -> os.statvfs_result:
        return os.statvfs_result((1, 1, 9, 7, 7, 9, 9, 9, 0, 255))

    monkeypatch.setattr(os, "statvfs", nearly_full)
    with pytest.raises(Problem, match=f"8 bytes are needed and {tmp_path} has 7 free") as caught:
        copy_all(str(made), str(tmp_path / "goal" / "deep"))
    assert caught.value.kind == "space"
    assert not (tmp_path / "goal").exists()


def test_a_full_quota_leaves_nothing_half_made(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: str, fresh: str) -> None:
        Path(fresh).write_bytes(b"wei")
        raise OSError(errno.EDQUOT, "Disk quota exceeded", fresh)

    monkeypatch.setattr(shutil, "copy2", full)
    with pytest.raises(Problem, match="Disk quota exceeded") as caught:
        copy_all(str(made), str(tmp_path / "goal"))
    assert caught.value.kind == "space"
    assert [path for path in (tmp_path / "goal").rglob("*") if path.is_file()] == []
