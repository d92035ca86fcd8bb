"""Log slices come back byte for byte, whatever is in them."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from towline.storage.logs import LogAnswer, LogSlice, log_arguments, parse_logs, parse_tail
from towline.storage.scripts import script


def run(tmp_path: Path, name: str, arguments: tuple[str, ...]) -> subprocess.CompletedProcess[bytes]:
    where = tmp_path / "operation"
    where.mkdir(exist_ok=True)
    return subprocess.run(["sh", "-c", script(name), name, *arguments], cwd=where, capture_output=True, check=False)


def read(tmp_path: Path, offsets: dict[str, int], attempt: int = 1) -> LogAnswer:
    done = run(tmp_path, "read-logs", log_arguments(str(tmp_path / "job"), attempt, offsets))
    assert (done.returncode, done.stderr) == (0, b"")
    return parse_logs(done.stdout)


@pytest.fixture
def attempt(tmp_path: Path) -> Path:
    path = tmp_path / "job" / "attempts" / "1"
    path.mkdir(parents=True)
    return path


@given(st.lists(st.tuples(st.sampled_from(["main.out", "main.err"]), st.binary(max_size=60)), max_size=4))
def test_an_answer_is_read_back_whatever_the_bytes_are(slices: list[tuple[str, bytes]]) -> None:
    stdout = b"newest 3\nend 1\n"
    for name, data in slices:
        stdout += f"file {name} {len(data) + 5} {len(data)}\n".encode() + data
    answer = parse_logs(stdout)
    assert answer == LogAnswer(3, True, tuple(LogSlice(name, len(data) + 5, data) for name, data in slices))


@pytest.mark.parametrize("stdout", [b"", b"newest 1\n", b"end 1\nnewest 1\n", b"newest 1\nend 0\nfile a 3 3\nab"])
def test_an_answer_that_broke_off_is_no_answer(stdout: bytes) -> None:
    with pytest.raises(ValueError):
        parse_logs(stdout)


def test_only_new_bytes_come_and_missing_files_say_so(tmp_path: Path, attempt: Path) -> None:
    (attempt / "main.out").write_bytes(b"one\ntwo\0\xff\nfile x 1 1\n")
    answer = read(tmp_path, {"main.out": 4, "main.err": 0})
    assert answer.slices == (LogSlice("main.out", 21, b"two\0\xff\nfile x 1 1\n"), LogSlice("main.err", -1, b""))
    assert not answer.ended
    assert read(tmp_path, {"main.out": 21}).slices[0].data == b""


def test_a_file_that_shrank_brings_nothing_and_breaks_nothing(tmp_path: Path, attempt: Path) -> None:
    (attempt / "main.out").write_bytes(b"ab")
    (attempt / "main.err").write_bytes(b"err")
    answer = read(tmp_path, {"main.out": 50, "main.err": 0})
    assert answer.slices == (LogSlice("main.out", 2, b""), LogSlice("main.err", 3, b"err"))


def test_the_end_and_the_newest_attempt_are_told(tmp_path: Path, attempt: Path) -> None:
    (attempt / "end").write_text("code=0\n")
    (attempt.parent / "2").mkdir()
    answer = read(tmp_path, {})
    assert (answer.newest, answer.ended) == (2, True)


def test_a_missing_job_directory_has_its_own_code(tmp_path: Path) -> None:
    for name in ("read-logs", "tail-logs", "list-results"):
        assert run(tmp_path, name, (str(tmp_path / "nosuch"), "1", "", "10")).returncode == 44, name


@pytest.mark.parametrize(
    ("content", "lines", "rest"),
    [
        (b"a\nb\nc\n", 2, b"b\nc\n"),
        (b"a\nb\nc", 1, b"c"),
        (b"a\n", 5, b"a\n"),
        (b"", 3, b""),
        (b"a\nb\n", 0, b""),
    ],
)
def test_a_tail_begins_at_the_last_lines(
    tmp_path: Path, attempt: Path, content: bytes, lines: int, rest: bytes
) -> None:
    (attempt / "main.out").write_bytes(content)
    done = run(tmp_path, "tail-logs", (str(tmp_path / "job"), "1", str(lines), "main.out", "main.err"))
    offsets = parse_tail(done.stdout)
    assert content[offsets["main.out"] :] == rest
    assert offsets["main.err"] == 0
