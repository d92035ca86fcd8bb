"""Data and marks come apart again, however the stream was cut and whatever the data looks like."""

from __future__ import annotations

import re
import subprocess
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from towline.remote.wire.framing import FrameReader, bootstrap_line, header, mark

NONCE = "0123456789abcdef0123456789abcdef"
OTHER = "0123456789abcdef0123456789abcdee"
START, END = mark(NONCE, "start") + b"\n", mark(NONCE, "end")

near_marks = st.sampled_from(
    [
        b"t",
        b"towline-",
        b"towline-towline-",
        mark(NONCE, "")[:-1],
        mark(NONCE, ""),
        mark(NONCE, "stop"),
        mark(OTHER, "start") + b"\n",
        mark(OTHER, "end:0") + b"\n",
        b"\0",
        b"\xff\xfe",
        b"\n",
    ]
)
noise = st.lists(st.one_of(st.binary(max_size=20), near_marks), max_size=12).map(b"".join)


def read(stream: bytes, cuts: list[int]) -> tuple[FrameReader, bytes]:
    reader, data = FrameReader(NONCE), b""
    places = sorted({0, len(stream), *(cut % (len(stream) + 1) for cut in cuts)})
    for start, end in pairwise(places):
        data += reader.feed(stream[start:end])
    return reader, data + reader.finish()


@given(before=noise, data=noise, after=noise, code=st.integers(0, 255), cuts=st.lists(st.integers(0, 999)))
def test_any_data_in_any_pieces(before: bytes, data: bytes, after: bytes, code: int, cuts: list[int]) -> None:
    stream = before + START + data + END + b":%d\n" % code + after
    reader, got = read(stream, cuts)
    assert (got, reader.started, reader.ended, reader.code) == (data, True, True, code)
    outside = reader.outside.head + reader.outside.tail
    assert outside == before + after


@given(data=noise, kept=st.integers(0, 60), cuts=st.lists(st.integers(0, 999)))
def test_a_stream_that_breaks_off_has_no_end(data: bytes, kept: int, cuts: list[int]) -> None:
    reader, got = read(START + data + (END + b":17\n")[: min(kept, len(END) + 3)], cuts)
    assert reader.started
    assert not reader.ended
    assert got.startswith(data)


@given(stream=noise, cuts=st.lists(st.integers(0, 999)))
def test_chatter_alone_is_never_data(stream: bytes, cuts: list[int]) -> None:
    reader, got = read(stream, cuts)
    assert (got, reader.started, reader.ended) == (b"", False, False)


def test_a_line_is_handed_out_at_once() -> None:
    reader = FrameReader(NONCE)
    assert reader.feed(START + b"loss 0.1\n") == b"loss 0.1\n"
    assert reader.feed(b"at") == b"a"  # a mark may begin with t
    assert reader.feed(b"t\n") == b"tt\n"


@pytest.mark.parametrize("word", ["refused", "unattached"])
def test_words_before_the_start(word: str) -> None:
    reader, _ = read(b"tar: No space left\n" + mark(NONCE, word) + b"\n", [])
    assert (reader.refused, reader.unattached) == (word == "refused", word == "unattached")
    assert reader.outside.text() == "tar: No space left\n"


def test_chatter_of_any_length_takes_constant_memory() -> None:
    reader = FrameReader(NONCE)
    for number in range(2000):
        reader.feed(b"%07d " % number * 64)
    kept = reader.outside.text()
    assert len(kept) < 10_000
    assert kept.startswith("0000000 ")
    assert kept.endswith("0001999 ")


def test_no_shell_finds_anything_to_interpret_in_the_line() -> None:
    line = bootstrap_line()
    inner = re.fullmatch(r"exec /bin/sh -c '([^']*)'", line)
    assert inner
    assert not set(line) & set("\n!\\`")
    assert line.isascii()
    assert len(line) < 1024


def test_shellcheck_has_nothing_against_the_line() -> None:
    # What it cannot see: the sourced file, which uses the variables, and that a trap calls the function.
    inner = bootstrap_line().partition("'")[2].rstrip("'")
    command = ["shellcheck", "--shell=sh", "--exclude=SC1091,SC2034,SC2317", "-"]
    found = subprocess.run(command, input=inner, capture_output=True, text=True, check=False)
    assert found.stdout == ""


def test_header() -> None:
    assert header(NONCE, 10240, "stop") == f"{NONCE} 10240 stop\n".encode()
    assert header(NONCE, 10240, "survive") == f"{NONCE} 10240 survive\n".encode()
