"""Operations run by real shells on this machine: what comes back, and that nothing stays."""

from __future__ import annotations

import asyncio
import hashlib
import os
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.unit.remote.lifeline import LifeLine
from towline.remote.base import Ending, Operation, Outcome, Sink
from towline.remote.local import Local


def run(operation: Operation, shell: str = "/bin/sh", sink: Sink | None = None) -> Outcome:
    return asyncio.run(Local(shell=shell).run(operation, sink=sink))


def test_streams_and_code_come_back_apart(shell: str, scratch: Path) -> None:
    outcome = run(Operation("x", "printf 'out\\000\\377no newline'; printf err >&2; exit 7"), shell)
    assert outcome == Outcome(Ending.DONE, 7, b"out\0\xffno newline", b"err", "localhost")
    assert not list(scratch.iterdir())


ARGUMENTS = ("plain", "", "two words", "it's", '"$HOME`id`\\', "line\nbreak\n", "*", "-n", "!x", "é", "\udcff")


def test_arguments_arrive_unchanged(shell: str) -> None:
    outcome = run(Operation("x", 'printf \'%s\\0\' "$#" "$@"', ARGUMENTS), shell)
    expected = [str(len(ARGUMENTS)), *ARGUMENTS]
    assert outcome.stdout == b"".join(os.fsencode(text) + b"\0" for text in expected)


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(args=st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\0")), max_size=4))
def test_any_arguments_arrive_unchanged(args: list[str]) -> None:
    outcome = run(Operation("x", "printf '%s\\0' \"$@\" .", tuple(args)))
    assert outcome.stdout == b"".join(text.encode() + b"\0" for text in [*args, "."])


def test_arguments_and_script_are_not_in_the_process_list(shell: str) -> None:
    outcome = run(Operation("x", "cat /proc/$PPID/cmdline /proc/$$/cmdline; : $1 in-script", ("in-args",)), shell)
    assert b"towline" in outcome.stdout or b"script" in outcome.stdout
    assert b"in-args" not in outcome.stdout
    assert b"in-script" not in outcome.stdout


def test_every_exit_code_comes_back() -> None:
    async def all_codes() -> list[int | None]:
        local = Local()
        codes: list[int | None] = []
        for start in range(0, 256, 16):
            calls = (local.run(Operation("x", f"exit {code}")) for code in range(start, start + 16))
            codes += [outcome.exit_code for outcome in await asyncio.gather(*calls)]
        assert local.calls == 256
        return codes

    assert asyncio.run(all_codes()) == list(range(256))


@pytest.mark.parametrize(
    ("script", "code", "stdout"),
    [
        ("set -e; echo a; false; echo b", 1, b"a\n"),
        ("set -u; echo a; echo $nothing_of_that_name; echo b", None, b"a\n"),
        ("trap 'echo bye' EXIT; echo a", 0, b"a\nbye\n"),
        ("kill -KILL $$", 137, b""),
        ("kill -TERM $$", 143, b""),
        ("exec echo replaced", 0, b"replaced\n"),
        ("cat", 0, b""),
        ("read x; echo $?", 0, b"1\n"),
        ("", 0, b""),
        ("if", None, b""),
    ],
    ids=lambda value: str(value)[:20],
)
def test_what_scripts_do(shell: str, scratch: Path, script: str, code: int | None, stdout: bytes) -> None:
    outcome = run(Operation("x", script), shell)
    assert (outcome.ending, outcome.stdout) == (Ending.DONE, stdout)
    assert outcome.exit_code == code if code is not None else outcome.exit_code
    assert not list(scratch.iterdir())


def test_the_working_directory_is_private_and_holds_the_files(shell: str, tmp_path: Path) -> None:
    local_file = tmp_path / "tool"
    local_file.write_bytes(b"#!/bin/sh\necho from a file\n")
    local_file.chmod(0o755)
    files = {"deep/er/x": b"1", "-n": b"2", "a b": b"", "tool": local_file, "ä" * 60 + "/" + "b" * 120: b"3"}
    script = "ls -ld . | cut -c1-10; umask; find . -type f | LC_ALL=C sort; ./tool"
    outcome = run(Operation("x", script, files=files), shell)
    listed = sorted(f"./{name}".encode() for name in files)
    assert outcome.stdout.splitlines() == [b"drwx------", b"0077", *listed, b"from a file"]


def test_a_large_output_passes_in_constant_memory(shell: str) -> None:
    taken = hashlib.sha256()
    tracemalloc.start()
    try:
        outcome = run(Operation("x", "head -c 50000000 /dev/zero"), shell, taken.update)
        assert tracemalloc.get_traced_memory()[1] < 5_000_000
    finally:
        tracemalloc.stop()
    assert taken.digest() == hashlib.sha256(bytes(50_000_000)).digest()
    assert (outcome.exit_code, outcome.stdout) == (0, b"")


def test_a_sink_gets_output_while_the_script_runs(shell: str, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    got: list[bytes] = []
    first = asyncio.Event()

    def sink(data: bytes) -> None:
        got.append(data)
        first.set()

    async def watch() -> Outcome:
        call = asyncio.create_task(
            Local(shell=shell).run(
                Operation("x", 'echo first; read go < "$1"; echo "$go"', (str(gate),)),
                sink=sink,
            )
        )
        await asyncio.wait_for(first.wait(), 20)
        gate.write_text("second\n")
        return await call

    assert asyncio.run(watch()).exit_code == 0
    assert b"".join(got) == b"first\nsecond\n"


def test_an_error_in_the_sink_stops_the_operation(shell: str, scratch: Path, lifeline: LifeLine) -> None:
    def sink(data: bytes) -> None:
        raise ValueError("no more")

    with pytest.raises(ValueError, match="no more"):
        run(Operation("x", lifeline.script + "sleep 1000", (str(lifeline.path),)), shell, sink)
    assert lifeline.ended()
    assert not list(scratch.iterdir())


async def cancelled_when_up(operation: Operation, shell: str) -> None:
    up = asyncio.Event()
    call = asyncio.create_task(Local(shell=shell).run(operation, sink=lambda data: up.set()))
    await asyncio.wait_for(up.wait(), 20)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call


@pytest.mark.parametrize(
    "rest",
    ["sleep 1000", "sleep 1000 & sleep 1000", "(sleep 1000 | cat) & wait"],
)
def test_a_cancelled_call_ends_everything(shell: str, scratch: Path, lifeline: LifeLine, rest: str) -> None:
    operation = Operation("x", lifeline.script + rest, (str(lifeline.path),))
    asyncio.run(cancelled_when_up(operation, shell))
    assert lifeline.ended()
    assert not list(scratch.iterdir())


def test_a_script_that_ignores_the_signal_is_killed(shell: str, scratch: Path, lifeline: LifeLine) -> None:
    script = "trap '' TERM; " + lifeline.script + "sleep 1000; sleep 1000"
    asyncio.run(cancelled_when_up(Operation("x", script, (str(lifeline.path),)), shell))
    assert lifeline.ended()
    assert not list(scratch.iterdir())


def test_the_time_limit_ends_everything(shell: str, scratch: Path, lifeline: LifeLine) -> None:
    script = lifeline.script + "echo partly; sleep 1000"
    outcome = run(Operation("x", script, (str(lifeline.path),), timeout=1.0), shell)
    assert (outcome.ending, outcome.exit_code) == (Ending.TIMED_OUT, None)
    assert outcome.stdout == b"up\npartly\n"
    assert lifeline.ended()
    assert not list(scratch.iterdir())


def test_a_script_may_clean_up_when_it_is_stopped(shell: str, lifeline: LifeLine, tmp_path: Path) -> None:
    cleaned = tmp_path / "cleaned"
    script = "trap 'echo >\"$2\"; exit 1' TERM; " + lifeline.script + "sleep 1000 & wait"
    asyncio.run(cancelled_when_up(Operation("x", script, (str(lifeline.path), str(cleaned))), shell))
    assert lifeline.ended()
    assert cleaned.exists()


def test_what_a_script_leaves_running_ends_with_it(shell: str, scratch: Path, lifeline: LifeLine) -> None:
    outcome = run(Operation("x", lifeline.script + "sleep 1000 &", (str(lifeline.path),)), shell)
    assert (outcome.ending, outcome.exit_code, outcome.stdout) == (Ending.DONE, 0, b"up\n")
    assert lifeline.ended()
    assert not list(scratch.iterdir())


def test_an_operation_that_survives_goes_on(shell: str, scratch: Path, tmp_path: Path) -> None:
    lifeline, gate = LifeLine(tmp_path), tmp_path / "gate"
    os.mkfifo(gate)
    script = 'exec 9>"$1"; echo up >&9; read go < "$2"; echo into a closed pipe; echo "$go" >"$3"'
    operation = Operation("x", script, (str(lifeline.path), str(gate), str(tmp_path / "done")), survives=True)

    async def cancel_in_the_middle() -> None:
        call = asyncio.create_task(Local(shell=shell).run(operation))
        assert await asyncio.to_thread(lifeline.said) == b"up\n"
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call

    asyncio.run(cancel_in_the_middle())
    gate.write_text("went on\n")
    assert lifeline.ended()
    lifeline.close()
    assert (tmp_path / "done").read_text() == "went on\n"


def test_an_operation_that_survives_answers_like_any_other(shell: str, scratch: Path) -> None:
    outcome = run(Operation("x", "echo out; echo err >&2; exit 3", survives=True), shell)
    assert outcome == Outcome(Ending.DONE, 3, b"out\n", b"err\n", "localhost")
    assert not list(scratch.iterdir())


def test_no_room_to_unpack_is_not_started(shell: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path / "missing"))
    outcome = run(Operation("x", "echo ran"), shell)
    assert (outcome.ending, outcome.stdout) == (Ending.NOT_STARTED, b"")
    assert "mktemp" in outcome.detail
