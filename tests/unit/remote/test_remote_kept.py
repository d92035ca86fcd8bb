"""A channel that serves one operation after another, with real shells as the other side."""

from __future__ import annotations

import asyncio
import os
import secrets
import subprocess
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from tests.lab.sshd import wait_until
from tests.unit.remote.conftest import SHELLS
from tests.unit.remote.lifeline import LifeLine
from towline.remote.base import Ending, Operation
from towline.remote.wire.archive import Channel, Payload
from towline.remote.wire.channel import Talk
from towline.remote.wire.framing import bootstrap_line
from towline.remote.wire.kept import Kept, Pool

Body = Callable[[Kept], Awaitable[None]]
PATIENCE = 10
APART = 'exec 3<&0; "$0" -c "$1" <&3 3<&- & exec 3<&-; wait "$!"'
"""The other side as a process of its own, as it is behind `ssh`: killing the program only ends its stdin."""


def with_channel(shell: str, body: Body, *, close: bool = True) -> None:
    async def scene() -> None:
        kept = await Kept.open([shell, "-c", APART, shell, bootstrap_line(shell)], shell=shell)
        await body(kept)
        if close:
            await kept.close()

    asyncio.run(asyncio.wait_for(scene(), 60))


async def talk(kept: Kept, operation: Operation) -> Talk:
    return await kept.converse(operation, secrets.token_hex(16), patience=PATIENCE)


async def cancelled_when_up(kept: Kept, operation: Operation, lifeline: LifeLine) -> None:
    call = asyncio.create_task(talk(kept, operation))
    assert await asyncio.to_thread(lifeline.said)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call


def test_many_operations_over_one_channel(shell: str, scratch: Path) -> None:
    async def body(kept: Kept) -> None:
        channel = await talk(kept, Operation("x", "cat /proc/$PPID/stat | cut -d' ' -f4"))
        for number in range(5):
            script = "printf '%s\\000\\377' \"$1\"; cat data; printf err >&2; exit $2"
            found = await talk(kept, Operation("x", script, (f"it's\n{number}", str(number)), {"data": b"\0d"}))
            answer = f"it's\n{number}\0".encode() + b"\xff\0d"
            assert (found.stdout, found.stderr, found.out.code) == (answer, b"err", number)
        again = await talk(kept, Operation("x", "cat /proc/$PPID/stat | cut -d' ' -f4"))
        assert channel.stdout == again.stdout

    with_channel(shell, body)


def test_a_script_alone_arrives_unchanged(shell: str, scratch: Path) -> None:
    arguments = ("", "two words", "it's", '"$HOME`id`\\', "line\nbreak\n", "'", "é", "\udcff")

    async def body(kept: Kept) -> None:
        await talk(kept, Operation("x", "true"))
        script = "cat <<'END'\nit's \\ $HOME\nEND\nprintf '%s\\0' \"$@\"; trap 'echo bye' EXIT; exit 3"
        found = await talk(kept, Operation("x", script, arguments))
        expected = b"it's \\ $HOME\n" + b"".join(os.fsencode(text) + b"\0" for text in arguments) + b"bye\n"
        assert (found.stdout, found.out.code) == (expected, 3)
        assert (await talk(kept, Operation("x", "if"))).out.code

    with_channel(shell, body)


def test_a_script_that_was_cut_runs_nothing(shell: str, tmp_path: Path) -> None:
    operation = Operation("x", "touch ran; : 'it''s'; touch ran", ("'", "a b"))
    whole = b"".join(Payload.of(operation, "0" * 32, to=Channel.SERVING).chunks()).partition(b"\n")[2]
    for length in range(len(whole) + 1):
        subprocess.run([shell, "-c", whole[:length]], cwd=tmp_path, stderr=subprocess.DEVNULL, check=False)
        assert (tmp_path / "ran").exists() == (length == len(whole))


def test_each_operation_has_a_directory_of_its_own(shell: str, scratch: Path) -> None:
    async def body(kept: Kept) -> None:
        await talk(kept, Operation("x", "touch left; cd /; umask 0"))
        found = await talk(kept, Operation("x", "ls -A; umask; ls -ld . | cut -c1-10"))
        assert found.stdout.split() == [b"0077", b"drwx------"]

    with_channel(shell, body)


def test_nothing_stays_when_the_channel_is_closed(shell: str, scratch: Path, lifeline: LifeLine) -> None:
    async def body(kept: Kept) -> None:
        assert (await talk(kept, Operation("x", 'exec 9>"$1"; echo up >&9', (str(lifeline.path),)))).out.code == 0

    with_channel(shell, body)
    assert lifeline.ended()
    wait_for_empty(scratch)


def test_nothing_stays_when_the_loop_ends(shell: str, scratch: Path) -> None:
    async def body(kept: Kept) -> None:
        assert (await talk(kept, Operation("x", "true"))).out.code == 0

    with_channel(shell, body, close=False)
    wait_for_empty(scratch)


def wait_for_empty(folder: Path) -> None:
    """The shell removes its directory once it sees the end of its stdin."""
    wait_until(lambda: not list(folder.iterdir()))


def test_what_an_operation_leaves_running_does_not_speak_in_the_next(
    shell: str, scratch: Path, tmp_path: Path, lifeline: LifeLine
) -> None:
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    escape = 'exec 9>"$1"; setsid sh -c \'read go <"$1"; echo late; echo late >&2\' sh "$2" & echo up'

    async def body(kept: Kept) -> None:
        first = await talk(kept, Operation("x", escape, (str(lifeline.path), str(gate))))
        assert first.stdout == b"up\n"
        second = asyncio.create_task(talk(kept, Operation("x", "sleep 0.2; echo mine")))
        await asyncio.sleep(0)
        if not await asyncio.to_thread(lifeline.ended, 0.05):  # it escaped, so it is there to speak
            gate.write_text("go\n")
        found = await second
        assert (found.stdout, found.stderr) == (b"mine\n", b"")

    with_channel(shell, body)
    assert lifeline.ended()


@pytest.mark.parametrize("rest", ["sleep 1000", "sleep 1000 & sleep 1000", "(sleep 1000 | cat) & wait"])
def test_a_cancelled_operation_ends_and_the_channel_goes_on(
    shell: str, scratch: Path, lifeline: LifeLine, rest: str
) -> None:
    script = 'exec 9>"$1"; echo up >&9; ' + rest

    async def body(kept: Kept) -> None:
        await cancelled_when_up(kept, Operation("x", script, (str(lifeline.path),)), lifeline)
        assert await asyncio.to_thread(lifeline.ended)
        assert kept.usable
        assert (await talk(kept, Operation("x", "echo next"))).stdout == b"next\n"

    with_channel(shell, body)
    wait_for_empty(scratch)


def test_a_script_that_ignores_the_signal_is_killed(shell: str, scratch: Path, lifeline: LifeLine) -> None:
    script = "trap '' TERM; exec 9>\"$1\"; echo up >&9; sleep 1000; sleep 1000"

    async def body(kept: Kept) -> None:
        await cancelled_when_up(kept, Operation("x", script, (str(lifeline.path),)), lifeline)
        assert kept.usable

    with_channel(shell, body)
    assert lifeline.ended()


def test_the_time_limit_ends_the_operation_and_shows_what_it_said(
    shell: str, scratch: Path, lifeline: LifeLine
) -> None:
    script = 'exec 9>"$1"; echo partly; echo err >&2; sleep 1000'

    async def body(kept: Kept) -> None:
        found = await talk(kept, Operation("x", script, (str(lifeline.path),), timeout=1.0))
        assert (found.ending, found.stdout, found.stderr) == (Ending.TIMED_OUT, b"partly\n", b"err\n")
        assert kept.usable

    with_channel(shell, body)
    assert lifeline.ended()


def test_an_operation_that_survives_goes_on_without_the_channel(shell: str, scratch: Path, tmp_path: Path) -> None:
    lifeline, gate = LifeLine(tmp_path), tmp_path / "gate"
    os.mkfifo(gate)
    script = 'exec 9>"$1"; echo up >&9; read go < "$2"; echo into nothing; echo "$go" >"$3"'
    operation = Operation("x", script, (str(lifeline.path), str(gate), str(tmp_path / "done")), survives=True)

    async def body(kept: Kept) -> None:
        await talk(kept, Operation("x", "true"))
        await cancelled_when_up(kept, operation, lifeline)
        assert not kept.usable

    with_channel(shell, body)
    gate.write_text("went on\n")
    assert lifeline.ended()
    lifeline.close()
    assert (tmp_path / "done").read_text() == "went on\n"
    wait_for_empty(scratch)


def test_an_operation_that_survives_answers_like_any_other(shell: str, scratch: Path) -> None:
    async def body(kept: Kept) -> None:
        for _ in range(2):
            found = await talk(kept, Operation("x", "echo out; echo err >&2; exit 3", survives=True))
            assert (found.stdout, found.stderr, found.out.code) == (b"out\n", b"err\n", 3)

    with_channel(shell, body)
    wait_for_empty(scratch)


@pytest.mark.parametrize(
    "leave", ["echo text >a", "mkdir .a", "ln -s nowhere ..a", "mkfifo '*'", "mkdir -- -rf", 'echo >"a\nb"']
)
def test_every_operation_begins_in_an_empty_directory(shell: str, scratch: Path, leave: str) -> None:
    async def body(kept: Kept) -> None:
        await talk(kept, Operation("x", "true"))
        assert (await talk(kept, Operation("x", leave))).out.code == 0
        assert (await talk(kept, Operation("x", "ls -A"))).stdout == b""

    with_channel(shell, body)
    wait_for_empty(scratch)


def output_sizes(scratch: Path) -> list[int]:
    return [path.stat().st_size for path in scratch.rglob("std*")]


def test_what_many_operations_leave_is_bounded(shell: str, scratch: Path) -> None:
    async def body(kept: Kept) -> None:
        for number in range(150):
            found = await talk(kept, Operation("x", f"echo {number}; echo err {number} >&2"))
            assert (found.stdout, found.stderr) == (f"{number}\n".encode(), f"err {number}\n".encode())
        sizes = output_sizes(scratch)
        assert len(sizes) <= 2 * 64
        assert sum(size > 0 for size in sizes) <= 2  # of the last one, which may not have cleared yet

    with_channel(shell, body)
    wait_for_empty(scratch)


def test_no_room_to_unpack_is_not_started_and_ends_the_channel(shell: str, scratch: Path) -> None:
    async def body(kept: Kept) -> None:
        await talk(kept, Operation("x", "true"))
        os.rename(scratch, scratch.with_name("gone"))  # whole, also while the last operation's files are removed
        found = await talk(kept, Operation("x", "echo ran"))
        assert (found.ending, found.stdout, kept.usable) == (Ending.NOT_STARTED, b"", False)
        assert str(scratch) in found.words
        late = await talk(kept, Operation("x", "echo ran"))
        assert (late.ending, late.first) == (Ending.NOT_STARTED, False)

    with_channel(shell, body)


def test_a_channel_that_dies_in_the_middle_is_unknown(shell: str, scratch: Path) -> None:
    async def body(kept: Kept) -> None:
        await talk(kept, Operation("x", "true"))
        found = await talk(
            kept, Operation("x", "server=$(cut -d' ' -f4 /proc/$PPID/stat); kill -KILL $server; sleep 1")
        )
        assert found.ending is Ending.UNKNOWN
        assert not kept.usable

    with_channel(shell, body)


@pytest.mark.usefixtures("bare_path")
@pytest.mark.parametrize("shell", [path for path in SHELLS if "busybox" not in path])  # that one has a setsid itself
@pytest.mark.parametrize("first", ["", "sleep 1000 &", "trap '' TERM;"])
def test_without_setsid_a_channel_serves_one_operation(
    shell: str, scratch: Path, lifeline: LifeLine, first: str
) -> None:
    script = f'{first} exec 9>"$1"; echo up >&9; sleep 1000'

    async def scene() -> None:
        line = [shell, "-c", bootstrap_line(shell)]
        kept = await Kept.open(line, shell=shell)
        assert (await talk(kept, Operation("x", "exit 4"))).out.code == 4
        await kept.gone()
        await cancelled_when_up(
            await Kept.open(line, shell=shell), Operation("x", script, (str(lifeline.path),)), lifeline
        )

    asyncio.run(asyncio.wait_for(scene(), 60))
    assert lifeline.ended()
    wait_for_empty(scratch)


def test_a_pool_gives_the_channel_used_last_and_opens_no_more_than_it_may(scratch: Path) -> None:
    line = ["sh", "-c", APART, SHELLS[0], bootstrap_line(SHELLS[0])]

    async def scene() -> None:
        pool = Pool(60)
        async with pool.channel(line, 1, 2) as first, pool.channel(line, 1, 2) as second:
            assert len(pool) == 0
        assert len(pool) == 2
        async with pool.channel(line, 1, 2) as again:
            assert again is first  # it was given back last
        async with pool.channel(line, 2, 2) as other:  # of another connection: the one idle longest makes room
            assert (first.usable, second.usable, other.usable) == (True, False, True)
        async with pool.place(1):
            assert len(pool) == 0
        await pool.close()

    asyncio.run(asyncio.wait_for(scene(), 60))


def test_an_idle_channel_leaves_after_its_time(scratch: Path) -> None:
    line = ["sh", "-c", APART, SHELLS[0], bootstrap_line(SHELLS[0])]

    async def scene() -> None:
        pool = Pool(0.05)
        async with pool.channel(line, 0, 1) as kept:
            await talk(kept, Operation("x", "true"))
        await kept.gone()
        assert len(pool) == 0

    asyncio.run(asyncio.wait_for(scene(), 60))
