"""Log slices come back byte for byte, whatever is in them and whatever happens to the files."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from towline.storage import logs
from towline.storage.logs import AttemptSign, LogAnswer, LogChoice, LogFile, LogSlice, Question, log_file, parse_logs
from towline.storage.scripts import script

SHELLS = [shell for shell in (["dash"], ["bash", "--posix"], ["busybox", "sh"]) if shutil.which(shell[0])]


def run(tmp_path: Path, name: str, arguments: tuple[str, ...], shell: list[str] | None = None) -> bytes:
    where = tmp_path / "operation"
    where.mkdir(exist_ok=True)
    command = [*(shell or ["sh"]), "-c", script(name), name, *arguments]
    done = subprocess.run(command, cwd=where, capture_output=True, stdin=subprocess.DEVNULL, check=False)
    assert (done.returncode, done.stderr, list(where.iterdir())) == (0, b"", [])
    return done.stdout


def read(
    tmp_path: Path,
    offsets: dict[str, int | None] | None = None,
    choice: LogChoice = LogChoice(),  # noqa: B008  it is frozen
    *,
    tasks: set[int] | None = None,
    shell: list[str] | None = None,
    **question: int | None,
) -> LogAnswer:
    patterns = choice.patterns((), tasks)
    asked = Question(str(tmp_path / "job"), patterns, **question)  # pyright: ignore[reportArgumentType]
    return parse_logs(run(tmp_path, "read-logs", asked.arguments(offsets or {}), shell))


@pytest.fixture
def attempt(tmp_path: Path) -> Path:
    path = tmp_path / "job" / "attempts" / "1"
    path.mkdir(parents=True)
    return path


def added(answer: LogAnswer) -> dict[str, bytes]:
    return {each.name: each.data for each in answer.slices}


@given(st.lists(st.tuples(st.sampled_from(["1/main.out", "2/main.err"]), st.binary(max_size=60)), max_size=4))
def test_an_answer_is_read_back_whatever_the_bytes_are(slices: list[tuple[str, bytes]]) -> None:
    heads = "".join(f"file {name} {len(data) + 9} 9 4 {len(data) + 5}\n" for name, data in slices)
    stdout = b"attempt 3 1 0 1\nfirst 3\n" + heads.encode() + b"data\n"
    stdout += b"".join(b"\nold\0" + data for _, data in slices)
    told = tuple(LogSlice(name, len(data) + 9, 9, b"\nold\0", data) for name, data in slices)
    assert parse_logs(stdout) == LogAnswer((AttemptSign(3, True, False, True),), 3, told)


@pytest.mark.parametrize(
    "stdout", [b"", b"first 1\n", b"ended 1\ndata\n", b"first 1\nfile 1/main.out 3 0 0 3\ndata\nab"]
)
def test_an_answer_that_broke_off_is_no_answer(stdout: bytes) -> None:
    with pytest.raises(ValueError):
        parse_logs(stdout)


@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("1/main.out", LogFile(1, "out")),
        ("12/main-3.err", LogFile(12, "err", task=3)),
        ("2/roles/policy/main.out", LogFile(2, "out", "policy")),
        ("2/roles/policy/ranks/0-n-1.x.out", LogFile(2, "out", "policy", 0, "n-1.x")),
        ("1/ranks/37-gpu-04.err", LogFile(1, "err", rank=37, node="gpu-04")),
        ("1/task-5/nodes/1-n2.out", LogFile(1, "out", node="n2", task=5)),
        *(
            (name, None)
            for name in ("main.out", "1/end", "1/main.txt", "1/ranks/x-n.out", "0/main.out", "1/ranks/../main.out")
        ),
    ],
)
def test_a_files_name_says_what_it_has(name: str, file: LogFile | None) -> None:
    assert log_file(name) == file


@pytest.mark.parametrize("shell", SHELLS, ids=lambda shell: shell[0])
def test_only_new_bytes_come_after_those_that_are_known(tmp_path: Path, attempt: Path, shell: list[str]) -> None:
    (attempt / "main.out").write_bytes(b"one\ntwo\0\xff\nfile x 1 1\n")
    answer = read(tmp_path, {"1/main.out": 4}, shell=shell)
    assert answer.slices == (LogSlice("1/main.out", 21, 4, b"one\n", b"two\0\xff\nfile x 1 1\n"),)
    (attempt / "main.out").write_bytes(bytes(range(200)))
    answer = read(tmp_path, {"1/main.out": 100}, shell=shell)
    assert answer.slices == (LogSlice("1/main.out", 200, 100, bytes(range(36, 100)), bytes(range(100, 200))),)
    assert read(tmp_path, {"1/main.out": 200}, shell=shell).slices == ()
    assert read(tmp_path, {"1/main.out": None}, shell=shell).slices == ()


def test_a_file_that_shrank_says_so(tmp_path: Path, attempt: Path) -> None:
    (attempt / "main.out").write_bytes(b"ab")
    (attempt / "main.err").write_bytes(b"err")
    answer = read(tmp_path, {"1/main.out": 50})
    assert answer.slices == (LogSlice("1/main.out", 2, 50, b"", b""), LogSlice("1/main.err", 3, 0, b"", b"err"))


def test_what_does_not_fit_into_one_answer_comes_with_the_next(
    tmp_path: Path, attempt: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logs, "MOST_BYTES", 10_000)
    data = os.urandom(25_000)
    (attempt / "main.out").write_bytes(data)
    (attempt / "main.err").write_bytes(b"few")
    answer = read(tmp_path)
    assert (added(answer), answer.cut) == ({"1/main.out": data[:5_000], "1/main.err": b"few"}, True)
    whole, offsets = b"", dict[str, int | None]()
    while answer.cut:
        answer = read(tmp_path, offsets, in_turn=True)
        whole += added(answer).get("1/main.out", b"")
        offsets |= {each.name: each.at + len(each.data) for each in answer.slices}
    assert whole == data
    assert added(answer)["1/main.err"] == b"few"


def test_every_attempt_tells_how_far_it_is(tmp_path: Path, attempt: Path) -> None:
    (attempt / "end").write_text("code=0\n")
    (attempt / "start").write_text("host=a\n")
    for number in (2, 10):
        (attempt.parent / str(number) / "ranks").mkdir(parents=True)
        (attempt.parent / str(number) / "main.out").write_text(f"{number}\n")
    (attempt.parent / "11").mkdir()
    answer = read(tmp_path)
    signs = [
        AttemptSign(1, True, True),
        *(AttemptSign(number, True, False, True) for number in (2, 10)),
        AttemptSign(11),
    ]
    assert (list(answer.attempts), answer.first, added(answer)) == (signs, 10, {"10/main.out": b"10\n"})
    assert list(added(read(tmp_path, first=1))) == ["2/main.out", "10/main.out"]
    assert list(added(read(tmp_path, first=2, last=2))) == ["2/main.out"]


def test_of_an_array_it_is_told_when_all_tasks_that_have_begun_have_ended(tmp_path: Path, attempt: Path) -> None:
    for task, names in ((1, ("start", "end")), (2, ("start",)), (3, ())):
        (attempt / f"task-{task}").mkdir()
        for name in names:
            (attempt / f"task-{task}" / name).write_text("x")
    assert [each.ended for each in read(tmp_path, tasks={1, 2, 3}).attempts] == [False]
    (attempt / "task-2" / "end").write_text("x")
    assert [each.ended for each in read(tmp_path, tasks={1, 2, 3}).attempts] == [True]


def test_ranks_nodes_and_tasks_are_chosen(tmp_path: Path, attempt: Path) -> None:
    names = ("main.out", "ranks/0-n1.out", "ranks/1-n2.err", "ranks/11-n2.out", "nodes/0-n1.out", "main-3.out")
    for name in (*names, "task-3/ranks/0-n1.out", "ranks/1-n2.txt", "ranks/1-n2.o;d"):
        (attempt / name).parent.mkdir(parents=True, exist_ok=True)
        (attempt / name).write_text("x")
    os.mkfifo(attempt / "main.err")
    (attempt / "ranks" / "2-n2.out").symlink_to("/etc/hostname")

    def found(choice: LogChoice = LogChoice(), tasks: set[int] | None = None) -> list[str]:  # noqa: B008
        return [name.removeprefix("1/") for name in added(read(tmp_path, choice=choice, tasks=tasks))]

    assert found() == list(names[:5])
    assert found(LogChoice(rank=1)) == ["ranks/1-n2.err"]
    assert found(LogChoice(node="n2")) == ["ranks/1-n2.err", "ranks/11-n2.out"]
    assert found(LogChoice(node="n1")) == ["ranks/0-n1.out", "nodes/0-n1.out"]
    assert found(tasks={3}) == ["main-3.out", "task-3/ranks/0-n1.out"]
    assert found(tasks=set()) == []


def test_roles_are_chosen() -> None:
    everything = LogChoice().patterns(("policy", "rollout"))
    assert {"main.err", "roles/policy/main.out", "roles/rollout/ranks/[0-9]*-*.[oe]*"} <= set(everything)
    one = LogChoice(role="policy", rank=3).patterns(("policy", "rollout"))
    assert one == ("roles/policy/ranks/3-*.[oe]*",)
    with pytest.raises(ValueError, match="not the name of a node"):
        LogChoice(node="n1/*")


def test_without_attempts_there_is_nothing_and_a_missing_job_directory_has_its_own_code(tmp_path: Path) -> None:
    (tmp_path / "job").mkdir()
    assert read(tmp_path) == LogAnswer()
    asked = Question(str(tmp_path / "nosuch"), ("main.out",)).arguments({})
    for name, arguments in (("read-logs", asked), ("list-results", (str(tmp_path / "nosuch"),))):
        done = subprocess.run(["sh", "-c", script(name), name, *arguments], capture_output=True, check=False)
        assert done.returncode == 44, name


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
    answer = read(tmp_path, tail=lines)
    assert [(each.at, each.data) for each in answer.slices] == [(len(content) - len(rest), rest)]
