"""The archive is whole, the same each time, and never leads out of its directory."""

from __future__ import annotations

import io
import tarfile
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from towline.models.errors import TransferFailed, UsageError
from towline.remote.base import Operation
from towline.remote.wire.archive import Payload

NONCE = "f" * 32


def sent(operation: Operation) -> tuple[bytes, bytes]:
    head, _, tar = b"".join(Payload.of(operation, NONCE).chunks()).partition(b"\n")
    return head, tar


def unpacked(tar: bytes) -> dict[str, bytes]:
    with tarfile.open(fileobj=io.BytesIO(tar)) as archive:
        return {m.name: file.read() for m in archive if (file := archive.extractfile(m))}


names = st.text(st.characters(codec="utf-8", exclude_characters="/\0"), min_size=1, max_size=120).filter(
    lambda name: name not in (".", "..")
)


@given(files=st.dictionaries(names, st.binary(max_size=2000), max_size=5))
def test_every_file_arrives_as_it_is(files: dict[str, bytes]) -> None:
    head, tar = sent(Operation("x", "true", files=files))
    assert head.split()[1] == str(len(tar)).encode()
    got = unpacked(tar)
    assert {name.removeprefix("files/"): got[name] for name in got if name.startswith("files/")} == files


def test_the_size_is_known_before_and_the_runner_is_last() -> None:
    payload = Payload.of(Operation("x", "true", files={"a" * 200: b"1"}), NONCE)
    assert payload.size == sum(len(chunk) for chunk in payload.chunks())
    assert list(unpacked(b"".join(payload.chunks()).partition(b"\n")[2]))[-1] == "runner"


def test_the_same_operation_gives_the_same_bytes() -> None:
    one = Operation("x", "true", ("a",), {"b": b"2", "a": b"1"})
    other = Operation("x", "true", ("a",), {"a": b"1", "b": b"2"})
    assert sent(one) == sent(other)


@pytest.mark.parametrize("name", ["/etc/passwd", "../x", "a/../../x", "", ".", "a\0b"])
def test_a_name_that_leads_out_is_refused(name: str) -> None:
    with pytest.raises(UsageError):
        Payload.of(Operation("x", "true", files={name: b""}), NONCE)


def test_nul_in_an_argument_is_refused() -> None:
    with pytest.raises(UsageError):
        Payload.of(Operation("x", "true", ("a\0b",)), NONCE)


def test_a_missing_local_file_is_told(tmp_path: Path) -> None:
    with pytest.raises(TransferFailed, match="gone"):
        Payload.of(Operation("x", "true", files={"a": tmp_path / "gone"}), NONCE)


def test_a_local_file_that_shrinks_meanwhile_is_told(tmp_path: Path) -> None:
    file = tmp_path / "data"
    file.write_bytes(b"x" * 1000)
    payload = Payload.of(Operation("x", "true", files={"a": file}), NONCE)
    file.write_bytes(b"x")
    with pytest.raises(TransferFailed, match="data"):
        list(payload.chunks())


def test_a_large_local_file_passes_in_constant_memory(tmp_path: Path) -> None:
    file = tmp_path / "data"
    with file.open("wb") as handle:
        handle.truncate(100_000_000)
    payload = Payload.of(Operation("x", "true", files={"a": file}), NONCE)
    tracemalloc.start()
    try:
        assert sum(len(chunk) for chunk in payload.chunks()) == payload.size > 100_000_000
        assert tracemalloc.get_traced_memory()[1] < 5_000_000
    finally:
        tracemalloc.stop()
