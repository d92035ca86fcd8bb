"""What a tree made by a job may bring home."""

from __future__ import annotations

import posixpath
import tarfile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from towline.storage.results import ResultFile, admit_member, parse_results, safe_link, safe_member_path

PARTS = st.lists(st.sampled_from(["..", ".", "a", "b", "", "x y", "\n"]), max_size=8).map("/".join)


def member(name: str, kind: bytes = tarfile.REGTYPE, link: str = "") -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type = kind
    info.linkname = link
    return info


@pytest.mark.parametrize(
    ("tar_member", "path"),
    [
        (member("./a/b"), "a/b"),
        (member("a/../b"), "b"),
        (member("a", tarfile.DIRTYPE), "a"),
        (member("a/l", tarfile.SYMTYPE, "../b"), "a/l"),
        (member("a/l", tarfile.SYMTYPE, "c/d"), "a/l"),
        (member("h", tarfile.LNKTYPE, "./a/b"), "h"),
        (member("/etc/passwd"), None),
        (member("../x"), None),
        (member("a/../../x"), None),
        (member("l", tarfile.SYMTYPE, "/etc"), None),
        (member("l", tarfile.SYMTYPE, "../x"), None),
        (member("a/l", tarfile.SYMTYPE, "b/../../.."), None),
        (member("a/l", tarfile.SYMTYPE, ""), None),
        (member("h", tarfile.LNKTYPE, "../x"), None),
        (member("fifo", tarfile.FIFOTYPE), None),
        (member("dev", tarfile.CHRTYPE), None),
        (member("disk", tarfile.BLKTYPE), None),
    ],
)
def test_only_what_stays_below_the_destination_is_admitted(tar_member: tarfile.TarInfo, path: str | None) -> None:
    assert admit_member(tar_member) == path


@given(PARTS)
def test_an_admitted_name_never_leaves_the_destination(name: str) -> None:
    path = safe_member_path(name)
    if path is not None:
        assert posixpath.normpath(posixpath.join("/dest", path)).startswith("/dest")


@given(PARTS, PARTS)
def test_an_admitted_link_never_leaves_the_destination(name: str, target: str) -> None:
    path = safe_member_path(name)
    if path is not None and safe_link(path, target):
        where = posixpath.join("/dest", posixpath.dirname(path), target)
        assert posixpath.normpath(where).startswith("/dest")


def test_names_may_hold_anything_but_nul() -> None:
    stdout = b"f 3 17.5 a b\n|c\0" + b"d 0 1 " + "ä".encode() + b"\xff\0"
    assert parse_results(stdout) == (ResultFile("a b\n|c", 3, 17.5), ResultFile("ä\udcff", 0, 1.0, readable=False))
