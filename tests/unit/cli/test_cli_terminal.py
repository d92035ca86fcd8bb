from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from towline.cli.terminal import LogFilter, clean


def filtered(*chunks: bytes) -> bytes:
    log = LogFilter()
    return b"".join([*(log.feed(chunk) for chunk in chunks), log.close()])


@pytest.mark.parametrize(
    ("data", "shown"),
    [
        (b"plain\ttext\r\n", b"plain\ttext\r\n"),
        (b"\x1b[1;31mred\x1b[0m", b"\x1b[1;31mred\x1b[0m\x1b[0m"),
        (b"\x1b[38:2::1:2:3mred", b"\x1b[38:2::1:2:3mred\x1b[0m"),
        (b"a\x1b[2Jb\x1b[10;10Hc", b"abc"),
        (b"a\x1b]0;title\x07b\x1b]8;;http://x\x1b\\c", b"abc"),
        (b"a\x1bP+q544e\x1b\\b\x1b_x\x1b\\c\x1b^x\x1b\\d\x1bXx\x1b\\e", b"abcde"),
        (b"a\x1b]0;never ended\nb", b"a\nb"),
        (b"a\x1bcb\x1b(0c\x1b7d\x1b=e", b"abcde"),
        (b"a\x07\x08\x0b\x0c\x0e\x7f\x00b", b"ab"),
        ("a\x9b2Jb\x85".encode(), b"a2Jb"),
        (b"a\x9b2Jb\xff", "a\ufffd2Jb\ufffd".encode()),
        (b"a\x1b", b"a"),
        (b"a\x1b[31", b"a[31"),
        ("grüße ✓\n".encode(), "grüße ✓\n".encode()),
    ],
)
def test_colours_stay_and_everything_else_that_steers_goes(data: bytes, shown: bytes) -> None:
    assert filtered(data) == shown


@given(st.lists(st.sampled_from([b"\x1b", b"[", b"]", b"3", b"1m", b"\x07", b"\\", b"J", b"\n", "ü✓".encode(), b"P"])))
def test_chunks_do_not_matter(pieces: list[bytes]) -> None:
    whole = b"".join(pieces)
    assert filtered(*(whole[at : at + 1] for at in range(len(whole)))) == filtered(whole)


@given(st.binary())
def test_only_colours_are_left_of_escapes(data: bytes) -> None:
    shown = filtered(data).decode()
    rest = shown.replace("\x1b[", "\x1b")
    for part in rest.split("\x1b")[1:]:
        assert part.lstrip("0123456789;:").startswith("m")
    assert not any((ord(char) < 32 and char not in "\n\r\t\x1b") or 0x7F <= ord(char) < 0xA0 for char in shown)


def test_an_endless_sequence_is_not_kept_for_ever() -> None:
    log = LogFilter()
    assert log.feed(b"\x1b]" + b"x" * 10_000)


@given(st.text())
def test_clean_text_is_one_printable_line(text: str) -> None:
    assert clean(text).isprintable()


def test_clean_text_shows_what_was_there() -> None:
    assert clean("a\nb\x1b[2J\u202e\udcff✓") == "a b\\x1b[2J\\u202e\\udcff✓"
