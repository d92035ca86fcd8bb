"""OpenSSH against a real sshd: one login, failover, refusals, cuts, and nothing that stays."""

from __future__ import annotations

import asyncio
import glob
import hashlib
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.lab.sshd import HOST, Server, free_port, kill, make_key, wait_until
from tests.unit.remote.lifeline import LifeLine
from towline.models.errors import AccessRefused
from towline.remote.base import Ending, Operation, Outcome
from towline.remote.ssh.openssh import OpenSSH

Start = Callable[..., Server]


@pytest.fixture
def folder() -> Iterator[Path]:
    """A short path: sockets live in it."""
    with tempfile.TemporaryDirectory(prefix="tl") as name:
        yield Path(name)


@pytest.fixture
def start(folder: Path) -> Iterator[Start]:
    servers: list[Server] = []

    def start(*settings: str) -> Server:
        server = Server(folder, settings)
        servers.append(server)
        server.start()
        return server

    yield start
    for server in servers:
        for pid in server.master_pids():
            kill(pid)
        server.stop()


@pytest.fixture
def lifeline(tmp_path: Path) -> Iterator[LifeLine]:
    line = LifeLine(tmp_path)
    yield line
    line.close()


def run(client: OpenSSH, *operations: Operation) -> list[Outcome]:
    async def calls() -> list[Outcome]:
        return await asyncio.gather(*(client.run(operation) for operation in operations))

    return asyncio.run(asyncio.wait_for(calls(), 120))


def script(text: str, *args: str, timeout: float | None = 60.0, survives: bool = False) -> Operation:
    return Operation("test", text, args, timeout=timeout, survives=survives)


def test_an_answer_is_the_scripts_alone(start: Start, folder: Path) -> None:
    (folder / "banner").write_text("Welcome, 12345 jobs\n")
    forced = "printf 12345; echo 'quota 99%%' >&2; bash -c \"$SSH_ORIGINAL_COMMAND\"; echo 67890; echo bye >&2"
    server = start(f"Banner {folder}/banner", f"ForceCommand {forced}")
    [outcome] = run(server.client(), script('printf "%s" "$1"; echo err >&2; exit 255', "it's\na b"))
    assert outcome == Outcome(Ending.DONE, 255, b"it's\na b", b"err\n", HOST)


@pytest.mark.parametrize("login_shell", ["tcsh", "fish", "dash", "bash"])
def test_every_login_shell_will_do(start: Start, login_shell: str) -> None:
    server = start(f'ForceCommand exec {login_shell} -c "$SSH_ORIGINAL_COMMAND"')
    [outcome] = run(server.client(), script('printf "%s" "$1"; exit 3', "!$HOME"))
    assert (outcome.ending, outcome.exit_code, outcome.stdout) == (Ending.DONE, 3, b"!$HOME")


def test_many_calls_and_other_processes_take_one_login(start: Start, folder: Path) -> None:
    server = start()
    client = server.client()
    assert [outcome.exit_code for outcome in run(client, *[script("exit 5")] * 12)] == [5] * 12
    assert (client.calls, client.logins) == (12, 1)
    program = f"""
import asyncio
from pathlib import Path
from tests.lab.sshd import Server
from towline.remote.base import Operation
client = Server(Path({str(folder)!r}), port={server.port}).client()
print(asyncio.run(client.run(Operation("x", "echo next"))).stdout, client.logins)
"""
    following = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    assert following.stdout == "b'next\\n' 0\n"
    assert server.logins == 1


def test_processes_that_start_together_take_one_login(start: Start) -> None:
    server = start()
    clients = [server.client() for _ in range(4)]

    async def together() -> list[Outcome]:
        return await asyncio.gather(*(client.run(script("true")) for client in clients))

    assert all(outcome.ok for outcome in asyncio.run(asyncio.wait_for(together(), 120)))
    assert server.logins == 1


def test_twenty_calls_over_two_channels(start: Start) -> None:
    server = start("MaxSessions 2")
    operations = [script('echo "$1"; sleep 0.1', str(number)) for number in range(20)]
    client = server.client()
    outcomes = run(client, *operations)
    assert [outcome.stdout for outcome in outcomes] == [f"{number}\n".encode() for number in range(20)]
    assert (server.logins, client.calls) == (1, 20)


def test_a_dead_first_host_is_passed_over_and_the_second_remembered(start: Start) -> None:
    server = start()
    client = server.client("127.0.0.2", HOST)
    assert run(client, script("true"))[0].host == HOST
    assert client.host == HOST
    [outcome] = run(server.client("127.0.0.2", "127.0.0.3"), script("true"))
    assert outcome.ending is Ending.NOT_STARTED
    assert re.fullmatch(r"127.0.0.2: .*Connection refused\n127.0.0.3: .*Connection refused", outcome.detail)


def test_a_host_that_never_answers_takes_the_connect_timeout(start: Start) -> None:
    server = start()
    with socket.create_server(("127.0.0.2", server.port)):
        client = server.client("127.0.0.2", HOST, access=server.access(connect_timeout=1))
        assert run(client, script("true"), script("true"))[1].host == HOST


def test_a_changed_host_key_is_refused(start: Start, folder: Path) -> None:
    server = start()
    other = Path(f"{make_key(folder / 'other')}.pub").read_text()
    server.known_hosts.write_text(f"[{HOST}]:{server.port} {other}")
    with pytest.raises(AccessRefused, match="has changed") as caught:
        run(server.client(HOST, "localhost"), script("true"))
    assert "SHA256:" in caught.value.why
    assert str(server.known_hosts) in caught.value.fix
    assert server.logins == 0


def test_an_unknown_host_is_accepted_once_unless_the_user_is_stricter(start: Start) -> None:
    server = start()
    server.user_config.write_text("StrictHostKeyChecking yes\n")
    with pytest.raises(AccessRefused, match="could not be verified"):
        run(server.client(), script("true"))
    server.user_config.write_text("StrictHostKeyChecking no\n")
    assert run(server.client(), script("true"))[0].ok
    assert HOST in server.known_hosts.read_text()


def test_a_refused_key_is_told_with_its_name(start: Start, folder: Path) -> None:
    server = start()
    wrong = make_key(folder / "wrong")
    with pytest.raises(AccessRefused, match=f"@{HOST} port {server.port} refused the login") as caught:
        run(server.client(access=server.access(key=wrong)), script("true"))
    assert str(wrong) in caught.value.why


def test_a_forced_command_is_diagnosed(start: Start) -> None:
    server = start('ForceCommand echo "This account is for transfers only."')
    [outcome] = run(server.client(), script("true"))
    assert outcome.ending is Ending.NOT_STARTED
    assert "it answered: This account is for transfers only." in outcome.detail


def test_a_killed_connection_is_opened_again_once(start: Start) -> None:
    server = start()
    client = server.client()
    assert run(client, script("true"))[0].ok
    [master] = server.master_pids()
    kill(master)
    wait_until(lambda: not server.master_pids())
    assert [outcome.ok for outcome in run(client, *[script("true")] * 4)] == [True] * 4
    assert (client.logins, server.logins) == (2, 2)


def test_a_connection_that_hangs_is_replaced(start: Start) -> None:
    server = start()
    client = server.client()
    assert run(client, script("true"))[0].ok
    [master] = server.master_pids()
    os.kill(master, signal.SIGSTOP)
    [hung] = run(client, script("true", timeout=1.0))
    assert hung.ending is Ending.TIMED_OUT
    assert run(client, script("true"))[0].ok
    assert server.logins == 2


@pytest.mark.parametrize("side", ["client", "server"])
def test_a_connection_cut_in_the_middle_is_unknown(start: Start, side: str, lifeline: LifeLine) -> None:
    server = start()
    client = server.client()
    got: list[bytes] = []

    def cut(data: bytes) -> None:
        got.append(data)
        if side == "server":
            server.cut()
        for pid in server.master_pids() if side == "client" else ():
            kill(pid)

    outcome = asyncio.run(client.run(script(lifeline.script + "sleep 1000", str(lifeline.path)), sink=cut))
    assert (outcome.ending, got) == (Ending.UNKNOWN, [b"up\n"])
    assert lifeline.ended()
    assert run(client, script("true"))[0].ok


def test_a_cut_while_sending_is_not_started(start: Start, folder: Path) -> None:
    server = start()
    client = server.client()
    assert run(client, script("true"))[0].ok
    large = folder / "large"
    with large.open("wb") as file:
        file.truncate(3_000_000_000)

    async def scene() -> Outcome:
        call = asyncio.create_task(client.run(Operation("x", "touch ran", files={"large": large})))
        while not glob.glob(f"{server.scratch}/.towline-*/files/large"):  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        server.cut()
        return await call

    assert asyncio.run(asyncio.wait_for(scene(), 60)).ending is Ending.NOT_STARTED
    wait_until(lambda: not list(server.scratch.iterdir()))


def test_a_cancelled_call_ends_on_the_other_side(start: Start, lifeline: LifeLine) -> None:
    server = start()

    async def scene() -> None:
        up = asyncio.Event()
        operation = script(lifeline.script + "sleep 1000 & sleep 1000", str(lifeline.path))
        call = asyncio.create_task(server.client().run(operation, sink=lambda data: up.set()))
        await up.wait()
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call

    asyncio.run(asyncio.wait_for(scene(), 30))
    assert lifeline.ended()


@pytest.mark.parametrize("how", ["cancel", "cut"])
def test_an_operation_that_survives_goes_on(start: Start, tmp_path: Path, lifeline: LifeLine, how: str) -> None:
    server = start()
    gate, done = tmp_path / "gate", tmp_path / "done"
    os.mkfifo(gate)
    text = 'exec 9>"$1"; echo up >&9; read go < "$2"; echo "$go"; echo "$go" > "$3"'
    operation = script(text, str(lifeline.path), str(gate), str(done), survives=True)

    async def scene() -> None:
        call = asyncio.create_task(server.client().run(operation))
        assert await asyncio.to_thread(lifeline.said) == b"up\n"
        if how == "cancel":
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call
        else:
            server.cut()
            assert (await call).ending is Ending.UNKNOWN

    asyncio.run(asyncio.wait_for(scene(), 30))
    gate.write_text("went on\n")
    assert lifeline.ended()
    assert done.read_text() == "went on\n"


def test_the_time_limit_ends_the_remote_side(start: Start, lifeline: LifeLine) -> None:
    server = start()
    operation = script(lifeline.script + "echo err >&2; sleep 1000", str(lifeline.path), timeout=2.0)
    [outcome] = run(server.client(), operation)
    assert (outcome.ending, outcome.stdout, outcome.stderr) == (Ending.TIMED_OUT, b"up\n", b"err\n")
    assert lifeline.ended()


def test_a_large_file_goes_up_in_constant_memory(start: Start, folder: Path) -> None:
    server = start()
    large = folder / "large"
    block = os.urandom(1_000_000)
    large.write_bytes(block * 100)
    tracemalloc.start()
    try:
        client = server.client()
        operation = Operation("x", "sha256sum <large | cut -d' ' -f1", files={"large": large}, timeout=300)
        [outcome] = run(client, operation)
        assert tracemalloc.get_traced_memory()[1] < 8_000_000
    finally:
        tracemalloc.stop()
    assert outcome.stdout.decode().strip() == hashlib.sha256(block * 100).hexdigest()


def test_the_users_own_connection_is_used_and_left(start: Start, folder: Path) -> None:
    server = start()
    server.user_config.write_text(f"Host {HOST}\n  ControlPath {folder}/u-%C\n")
    client = server.client(linger=0)
    command = ["ssh", *server.access().options(), "-o", "StrictHostKeyChecking=accept-new"]
    subprocess.run([*command, "-M", "-N", "-f", HOST], check=True, stderr=subprocess.DEVNULL)

    async def scene() -> None:
        assert (await client.run(script("true"))).ok
        await client.disconnect()
        await client.close()

    asyncio.run(scene())
    assert (client.logins, server.logins) == (0, 1)
    control = [*command, "-O", "exit", HOST]
    assert subprocess.run(control, capture_output=True, check=False).returncode == 0


def test_jump_hosts_of_the_users_configuration_count(start: Start) -> None:
    server = start()
    key, known = server.key, server.known_hosts
    server.user_config.write_text(
        f"Host jump\n  HostName {HOST}\nHost inner\n  HostName {HOST}\n  HostKeyAlias inner\n  ProxyJump jump\n"
        f"Host *\n  Port {server.port}\n  IdentityFile {key}\n  UserKnownHostsFile {known}\n"
        "  StrictHostKeyChecking accept-new\n"
    )
    client = server.client("inner")
    assert [outcome.ok for outcome in run(client, *[script("true")] * 3)] == [True] * 3
    assert (client.logins, server.logins) == (1, 2)


def test_nothing_stays_when_nothing_shall(start: Start) -> None:
    server = start()
    client = server.client(linger=0)

    async def scene() -> None:
        assert (await client.run(script("true"))).ok
        assert server.master_pids()
        await client.close()

    asyncio.run(scene())
    wait_until(lambda: not server.master_pids())


def test_nobody_listens(start: Start) -> None:
    server = start()
    [outcome] = run(server.client(access=server.access(port=free_port())), script("true"))
    assert outcome.ending is Ending.NOT_STARTED
    assert "Connection refused" in outcome.detail


def test_a_server_with_too_many_at_its_door_is_tried_again(start: Start) -> None:
    server = start("MaxStartups 1:100:1")

    async def scene() -> Outcome:
        _, door = await asyncio.open_connection(HOST, server.port)
        call = asyncio.create_task(server.client().run(script("true")))
        while "MaxStartups" not in server.log:  # noqa: ASYNC110  sshd tells it nowhere else
            await asyncio.sleep(0.02)
        door.close()
        await door.wait_closed()
        return await call

    assert asyncio.run(asyncio.wait_for(scene(), 60)).ok
