"""ssh's words, key files, socket places, channel limits and the in-memory remote."""

from __future__ import annotations

import asyncio
import os
import random
import tempfile
from pathlib import Path

import pytest

from towline.models.errors import AccessRefused, ConfigError
from towline.remote.base import Ending, Operation, Outcome
from towline.remote.memory import InMemory
from towline.remote.ssh.access import Access, connection_name, parse_config
from towline.remote.ssh.diagnosis import Kind, LoginTarget, diagnose
from towline.remote.ssh.openssh import OpenSSH
from towline.remote.ssh.slots import Slots
from towline.remote.ssh.sockets import control_directory, locked

TARGET = LoginTarget("login1", "login1.example.org", "ada", "2222", ("~/.ssh/id_ed25519",), ("/home/ada/known",))
CHANGED = """\
@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@
@    WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!     @
@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@
IT IS POSSIBLE THAT SOMEONE IS DOING SOMETHING NASTY!
Someone could be eavesdropping on you right now (man-in-the-middle attack)!
It is also possible that a host key has just been changed.
The fingerprint for the ED25519 key sent by the remote host is
SHA256:Ue1G1yMAaGVwNWw1VTTZlMgvjTnBLmVqCcFNAhuF5r8.
Please contact your system administrator.
Add correct host key in /home/ada/known to get rid of this message.
Offending ED25519 key in /home/ada/known:7
Host key for login1.example.org has changed and you have requested strict checking.
Host key verification failed.
"""


@pytest.mark.parametrize(
    ("words", "kind"),
    [
        ("ssh: connect to host login1 port 22: Connection refused", Kind.AWAY),
        ("ssh: connect to host login1 port 22: Connection timed out", Kind.AWAY),
        ("ssh: connect to host login1 port 22: No route to host", Kind.AWAY),
        ("Connection timed out during banner exchange", Kind.AWAY),
        ("ssh: Could not resolve hostname login1: Name or service not known", Kind.AWAY),
        ("", Kind.AWAY),
        ("kex_exchange_identification: Connection closed by remote host", Kind.BUSY),
        (
            (
                "ssh: Could not resolve hostname nojump: Name or service not known\r\n"
                "kex_exchange_identification: Connection closed by remote host\r\n"
                "Connection closed by UNKNOWN port 65535"
            ),
            Kind.AWAY,
        ),
        ("kex_exchange_identification: read: Connection reset by peer", Kind.BUSY),
        ("Exceeded MaxStartups", Kind.BUSY),
        ("ada@login1: Permission denied (publickey).", Kind.REFUSED),
        ("Received disconnect from 10.0.0.1 port 22:2: Too many authentication failures", Kind.REFUSED),
        (CHANGED, Kind.REFUSED),
        ("No ED25519 host key is known for login1 and you have requested strict checking.", Kind.REFUSED),
        ("/home/ada/.ssh/config: line 3: Bad configuration option: hots", Kind.SETUP),
        ("Bad owner or permissions on /home/ada/.ssh/config", Kind.SETUP),
        ("No user exists for uid 1234", Kind.SETUP),
    ],
)
def test_what_ssh_says(words: str, kind: Kind) -> None:
    failure = diagnose(words, TARGET)
    assert failure.kind is kind
    assert failure.reason
    assert bool(failure.error) == (kind in (Kind.REFUSED, Kind.SETUP))


def test_a_changed_host_key_says_which_and_how_to_check() -> None:
    error = diagnose(CHANGED, TARGET).error
    assert isinstance(error, AccessRefused)
    assert "SHA256:Ue1G1yMAaGVwNWw1VTTZlMgvjTnBLmVqCcFNAhuF5r8" in error.why
    assert "/home/ada/known line 7" in error.why
    assert "ssh-keygen -R '[login1.example.org]:2222' -f /home/ada/known" in error.fix


def test_a_refused_key_says_who_where_and_which() -> None:
    words = 'Load key "/home/ada/k": error in libcrypto\nada@login1: Permission denied (publickey).'
    error = diagnose(words, TARGET).error
    assert isinstance(error, AccessRefused)
    assert error.what == "ada@login1 (login1.example.org) port 2222 refused the login"
    assert "~/.ssh/id_ed25519" in error.why
    assert 'Load key "/home/ada/k": error in libcrypto' in error.why


@pytest.fixture
def key(tmp_path: Path) -> Path:
    file = tmp_path / "a key"
    file.write_text("secret")
    return file


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o660, 0o604])
def test_a_key_open_to_others_is_refused_before_connecting(key: Path, mode: int) -> None:
    key.chmod(mode)
    with pytest.raises(ConfigError) as caught:
        asyncio.run(OpenSSH(["nowhere.invalid"], Access(identity_file=key)).run(Operation("x", "true")))
    assert caught.value.fix == f"chmod 600 '{key}'"


@pytest.mark.parametrize("mode", [0o600, 0o400])
def test_a_private_key_is_fine(key: Path, mode: int) -> None:
    key.chmod(mode)
    Access(identity_file=key).check()


def test_a_missing_key_is_told(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="gone"):
        Access(identity_file=tmp_path / "gone").check()


def test_no_ssh_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ConfigError, match="no ssh"):
        asyncio.run(OpenSSH(["login1"]).run(Operation("x", "true")))


@pytest.mark.parametrize("hosts", [[], [""], ["-oProxyCommand=x"]])
def test_hosts_that_cannot_be(hosts: list[str]) -> None:
    with pytest.raises(ConfigError):
        OpenSSH(hosts)


def test_nothing_is_said_for_the_user_that_the_profile_does_not_say() -> None:
    assert Access().options() == ("-o", "BatchMode=yes", "-o", "LogLevel=ERROR")


def test_a_connection_is_named_by_what_makes_it_different() -> None:
    one = parse_config("user ada\nhostname h\nport 22\nidentityfile ~/.ssh/a\nidentityfile ~/.ssh/b\nsendenv LANG\n")
    assert one["identityfile"] == ("~/.ssh/a", "~/.ssh/b")
    name = connection_name("h", one)
    assert connection_name("h", {**one, "sendenv": ()}) == name
    others = [{**one, "user": ("bob",)}, {**one, "port": ("23",)}, {**one, "proxyjump": ("j",)}]
    assert len({name, connection_name("g", one), *(connection_name("h", other) for other in others)}) == 5


def test_sockets_live_in_a_private_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with tempfile.TemporaryDirectory() as short:
        wanted = Path(short) / "a"
        assert control_directory(wanted) == wanted
        assert wanted.stat().st_mode & 0o777 == 0o700
        monkeypatch.setenv("XDG_RUNTIME_DIR", short)
        assert control_directory() == Path(short) / "towline"
        wanted.chmod(0o755)
        with pytest.raises(ConfigError, match="cannot hold"):
            control_directory(wanted)
        link = Path(short) / "link"
        link.symlink_to(tmp_path)
        with pytest.raises(ConfigError, match="cannot hold"):
            control_directory(link)


@pytest.mark.parametrize("name", ["x" * 100, "with space", "with%percent"])
def test_a_path_that_ssh_cannot_take_is_replaced(tmp_path: Path, name: str) -> None:
    found = control_directory(tmp_path / name)
    assert found == Path(f"/tmp/towline-{os.getuid()}")
    assert found.stat().st_mode & 0o777 == 0o700


def test_a_lock_is_held_by_one_at_a_time(tmp_path: Path) -> None:
    inside: list[str] = []

    async def visit(name: str) -> None:
        async with locked(tmp_path / "lock"):
            inside.append(name)
            await asyncio.sleep(0)
            inside.append(name)

    async def all_visits() -> None:
        await asyncio.gather(*(visit(name) for name in "abc"))

    asyncio.run(all_visits())
    assert inside[0::2] == inside[1::2]


def test_slots_bound_and_learn() -> None:
    allowed, most = 3, 8
    rng = random.Random(1)
    slots, inside, peak, refusals = Slots(most), 0, 0, 0

    async def call() -> None:
        nonlocal inside, peak, refusals
        while True:
            async with slots:
                if inside >= allowed:
                    refusals += 1
                    slots.refused()
                else:
                    inside += 1
                    peak = max(peak, inside)
                    for _ in range(rng.randrange(1, 5)):
                        await asyncio.sleep(0)
                    inside -= 1
                    slots.worked()
                    return
            await asyncio.sleep(0)

    async def all_calls() -> None:
        await asyncio.gather(*(call() for _ in range(50)))

    asyncio.run(all_calls())
    assert peak == allowed
    assert refusals <= most
    assert (slots.busy, slots.limit) == (0, allowed)


def test_a_cancelled_waiter_gives_its_turn_on() -> None:
    async def scene() -> int:
        slots, done = Slots(1), 0

        async def call() -> None:
            nonlocal done
            async with slots:
                await asyncio.sleep(0)
                done += 1

        calls = [asyncio.create_task(call()) for _ in range(4)]
        await asyncio.sleep(0)
        calls[1].cancel()
        await asyncio.gather(*calls, return_exceptions=True)
        return done

    assert asyncio.run(asyncio.wait_for(scene(), 10)) == 3


def test_success_raises_the_limit_again() -> None:
    async def scene() -> int:
        slots = Slots(4)
        async with slots:
            slots.refused()
        for _ in range(200):
            async with slots:
                slots.worked()
        return slots.limit

    assert asyncio.run(scene()) > 1


def test_the_in_memory_remote_records_and_answers() -> None:
    async def answer(operation: Operation) -> Outcome:
        return Outcome(Ending.DONE, 0, operation.script.encode())

    async def scene() -> None:
        remote = InMemory(answer)
        assert (await remote.run(Operation("a", "one"))).stdout == b"one"
        got: list[bytes] = []
        assert (await remote.run(Operation("b", "two"), sink=got.append)).stdout == b""
        assert (got, remote.calls, [op.name for op in remote.operations]) == ([b"two"], 2, ["a", "b"])
        await remote.close()
        assert remote.closed

    asyncio.run(scene())
