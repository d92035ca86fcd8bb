"""The bootstrap line through real login shells, with chatter around, and where `setsid` is missing."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

import pytest

from tests.unit.remote.lifeline import LifeLine
from towline.remote.base import Operation, Sink
from towline.remote.wire.archive import Payload
from towline.remote.wire.channel import Talk, converse
from towline.remote.wire.framing import bootstrap_line

LOGIN_SHELLS = [name for name in ("bash", "dash", "tcsh", "csh", "fish", "zsh", "ksh", "mksh") if shutil.which(name)]
NONCE = "ab" * 16


def talk(argv: list[str], operation: Operation, *, shell: str = "/bin/sh", sink: Sink | None = None) -> Talk:
    payload = Payload.of(operation, NONCE, shell=shell)
    return asyncio.run(converse(argv, payload, operation, NONCE, sink=sink, patience=10))


@pytest.mark.parametrize("login_shell", LOGIN_SHELLS)
def test_every_login_shell_runs_the_line(login_shell: str, scratch: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(scratch))
    for name in (".tcshrc", ".cshrc", ".zshenv"):
        (scratch / name).write_text("echo 12345\n")
    operation = Operation("x", 'printf %s "$1"; cat data; echo err >&2; exit 9', ("a'b\nc!",), {"data": b"\0\xff"})
    found = talk([login_shell, "-c", bootstrap_line()], operation)
    assert (found.stdout, found.stderr, found.out.code) == (b"a'b\nc!\0\xff", b"err\n", 9)


def test_chatter_around_the_answer_is_not_data(scratch: Path) -> None:
    noisy = 'printf "\\n12345 no newline"; echo "Warning: quota" >&2; sh -c "$1"; echo 67890; echo bye >&2'
    found = talk(["sh", "-c", noisy, "sh", bootstrap_line()], Operation("x", "printf 1; printf 2 >&2"))
    assert (found.stdout, found.stderr, found.out.code) == (b"1", b"2", 0)
    assert "12345 no newline" in found.out.outside.text()


@pytest.mark.usefixtures("bare_path")
@pytest.mark.parametrize("first", ["", "sleep 1000 &", "trap '' TERM;"])
def test_a_lost_client_ends_everything_without_setsid(
    shell: str, scratch: Path, lifeline: LifeLine, first: str
) -> None:
    operation = Operation("x", f"{first} {lifeline.script} sleep 1000", (str(lifeline.path),))

    def lose(data: bytes) -> None:
        raise EOFError

    with pytest.raises(EOFError):
        talk([shell, "-c", bootstrap_line(shell)], operation, shell=shell, sink=lose)
    assert lifeline.ended()
    assert not list(scratch.iterdir())


@pytest.mark.usefixtures("bare_path")
def test_answers_come_back_without_setsid(shell: str, scratch: Path, lifeline: LifeLine) -> None:
    operation = Operation("x", lifeline.script + "sleep 1000 & exit 4", (str(lifeline.path),))
    found = talk([shell, "-c", bootstrap_line(shell)], operation, shell=shell)
    assert (found.stdout, found.out.code) == (b"up\n", 4)
    assert lifeline.ended()
    assert not list(scratch.iterdir())


def test_an_archive_that_is_cut_short_runs_nothing(shell: str, scratch: Path) -> None:
    whole = Payload.of(Operation("x", "echo ran"), NONCE, shell=shell)
    data = b"".join(whole.chunks())

    async def sent(count: int) -> bytes:
        process = await asyncio.create_subprocess_exec(
            *(shell, "-c", bootstrap_line(shell)),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
        )
        out, _ = await process.communicate(data[:count])
        return out

    for missing in (1025, 1536, 2000, len(data) - 200, len(data)):
        assert b"-start" not in asyncio.run(sent(len(data) - missing))
    assert b"-start" in asyncio.run(sent(len(data)))
    assert not list(scratch.iterdir())
