"""Bytes in numbers, silent cuts, and other ways to a key, over a real sshd."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.lab.sshd import HOST, Server, kill, make_key
from tests.lab.test_remote_ssh import Start, folder, lifeline, run, script, start
from tests.unit.remote.lifeline import LifeLine
from towline.models.errors import AccessRefused
from towline.remote.base import Ending, Operation, Outcome
from towline.remote.files.transfer import Transfers
from towline.remote.ssh.access import Access

__all__ = ["folder", "lifeline", "start"]

GIGABYTE = 1_000_000_000


def test_a_download_goes_on_where_the_connection_was_cut(start: Start, folder: Path) -> None:
    server = start()
    source, dest = folder / "source", folder / "home" / "file"
    block = os.urandom(1_000_000)
    with source.open("wb") as file:
        for _ in range(200):
            file.write(block)
    cut = 0

    def progress(done: int, total: int) -> None:
        nonlocal cut
        if not cut and done > total / 2:
            cut = done
            server.cut()

    found = asyncio.run(
        asyncio.wait_for(Transfers(server.client()).download(str(source), dest, progress=progress), 120)
    )
    assert cut
    assert found.received == found.bytes == source.stat().st_size
    subprocess.run(["cmp", source, dest], check=True)
    assert server.logins == 2


def test_an_upload_and_a_download_take_one_login(start: Start, folder: Path) -> None:
    server = start()
    transfers = Transfers(server.client())
    files: dict[str, bytes | Path] = {f"{number % 7}/{number}": b"%d" % number for number in range(300)}

    async def scene() -> None:
        await transfers.upload(files, f"{folder}/up")
        await transfers.download(f"{folder}/up/6/13", folder / "back")

    asyncio.run(asyncio.wait_for(scene(), 60))
    assert {name: (folder / "up" / name).read_bytes() for name in files} == files
    assert (folder / "back").read_bytes() == b"13"
    assert server.logins == 1


def test_an_upload_onto_a_full_disk_leaves_nothing(start: Start, folder: Path) -> None:
    server = start()
    small = folder / "small"
    small.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "none", small], check=True)
    try:
        [outcome] = run(server.client(), Operation("x", "true", files={"a": bytes(3_000_000)}, where=str(small)))
        assert outcome.ending is Ending.NOT_STARTED
        assert "No space left" in outcome.detail
        assert not list(small.iterdir())
    finally:
        subprocess.run(["umount", small], check=True)


def test_a_gigabyte_of_output_passes_in_constant_memory(start: Start, folder: Path) -> None:
    server = start()
    program = f"""
import asyncio, resource
from pathlib import Path
from tests.lab.sshd import Server
from towline.remote.base import Operation
client = Server(Path({str(folder)!r}), port={server.port}).client()
taken = 0
def take(data):
    global taken
    taken += len(data)
def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
asyncio.run(client.run(Operation("x", "echo small"), sink=take))
before, taken = peak(), 0
outcome = asyncio.run(client.run(Operation("x", "head -c {GIGABYTE} /dev/zero", timeout=300), sink=take))
print(outcome.exit_code, taken, peak() - before)
"""
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=300)
    code, taken, grown = map(int, found.stdout.split())
    assert (code, taken) == (0, GIGABYTE)
    assert grown < 20, f"{grown} MiB more than for a small answer"


def test_a_silent_cut_is_found_and_the_connection_replaced_once(start: Start, lifeline: LifeLine) -> None:
    server = start()
    client = server.client(access=server.access(keepalive=1))

    async def scene() -> Outcome:
        call = asyncio.create_task(
            client.run(script('exec 9>"$1"; echo up >&9; sleep 1000', str(lifeline.path), timeout=None))
        )
        assert await asyncio.to_thread(lifeline.said)
        frozen = server.freeze()
        outcome = await asyncio.wait_for(call, 20)
        after = await asyncio.gather(*(client.run(script("true")) for _ in range(8)))
        assert [outcome.ok for outcome in after] == [True] * 8
        for pid in frozen:
            kill(pid)
        return outcome

    assert asyncio.run(asyncio.wait_for(scene(), 60)).ending is Ending.UNKNOWN
    assert server.logins == 2
    assert lifeline.ended()


def test_a_key_that_only_the_agent_has(start: Start, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    server = start()
    server.user_config.write_text("IdentityFile none\n")
    agent = folder / "agent"
    with subprocess.Popen(["ssh-agent", "-D", "-a", agent], stdout=subprocess.DEVNULL) as process:
        try:
            monkeypatch.setenv("SSH_AUTH_SOCK", str(agent))
            while subprocess.run(["ssh-add", "-q", server.key], stderr=subprocess.DEVNULL, check=False).returncode:
                assert process.poll() is None
            server.key.unlink()
            access = Access(port=server.port, known_hosts_file=server.known_hosts, config_file=server.user_config)
            assert run(server.client(access=access), script("true"))[0].ok
        finally:
            process.terminate()


def test_names_in_turn_share_one_host_key_through_an_alias(start: Start, folder: Path) -> None:
    server = start()
    server.user_config.write_text("Host *\n  HostKeyAlias cluster\n  StrictHostKeyChecking yes\n")
    public = (folder / "host_key.pub").read_text()
    server.known_hosts.write_text(f"cluster {public}")
    for name in (HOST, "localhost"):
        assert run(server.client(name), script("true"))[0].host == name
    other = Path(f"{make_key(folder / 'other')}.pub").read_text()
    server.known_hosts.write_text(f"cluster {other}")
    client = Server(folder, port=server.port).client("127.0.0.1", access=server.access(connect_timeout=9))
    asyncio.run(client.disconnect())
    for pid in server.master_pids():
        kill(pid)
    with pytest.raises(AccessRefused, match="has changed"):
        run(server.client("localhost"), script("true"))


def test_a_site_whose_slurm_is_only_in_the_login_shells_path_is_no_trouble_here(start: Start) -> None:
    server = start("SetEnv TMPDIR=/tmp PATH=/usr/bin:/bin")
    [outcome] = run(server.client(), script("sbatch-of-a-module"))
    assert (outcome.ending, outcome.exit_code) == (Ending.DONE, 127)
    assert b"not found" in outcome.stderr


def test_messages_that_are_not_ascii_come_through(start: Start) -> None:
    server = start("ForceCommand printf 'Gr\\303\\274\\303\\237e \\377\\n' >&2; sh -c \"$SSH_ORIGINAL_COMMAND\"")
    text = "Größe 日本"
    [outcome] = run(server.client(), script("printf '%s' \"$1\" >&2; printf '\\377\\000\\376'; exit 1", text))
    assert (outcome.stdout, outcome.stderr, outcome.exit_code) == (b"\xff\0\xfe", text.encode(), 1)


@pytest.mark.parametrize(("mode", "advice"), [(0o600, "mode 0400"), (0o444, "mode 0400")])
def test_a_lent_key_gets_its_own_advice(folder: Path, mode: int, advice: str) -> None:
    key = folder / "key"
    key.write_text("secret")
    key.chmod(mode)
    folder.chmod(0o755)
    user = "nobody"
    program = f"""
from pathlib import Path
from towline.models.errors import ConfigError
from towline.remote.ssh.access import Access
try:
    Access(identity_file=Path({str(key)!r})).check()
except ConfigError as error:
    print(error.fix)
"""
    setpriv = shutil.which("setpriv")
    assert setpriv
    command = [setpriv, f"--reuid={user}", f"--regid={65534}", "--clear-groups", sys.executable, "-c", program]
    environment = {name: value for name, value in os.environ.items() if name != "HOME"}
    found = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert advice in found.stdout, found.stderr
    assert "chmod" not in found.stdout


def test_a_login_that_asks_is_refused_at_once_and_says_what_to_do(start: Start) -> None:
    server = start("PasswordAuthentication yes", "PubkeyAuthentication no", "KbdInteractiveAuthentication yes")
    with pytest.raises(AccessRefused, match="refused the login") as caught:
        run(server.client(), script("true"))
    assert "one-time code" in caught.value.fix
    assert server.logins == 0


def test_a_slow_or_failing_start_file_changes_no_answer(start: Start, folder: Path) -> None:
    (folder / "rc").write_text("echo 12345; echo noise >&2; cd /; set -e; umask 0\n")
    server = start(f'ForceCommand . {folder}/rc; eval "$SSH_ORIGINAL_COMMAND"')
    operations = [script("false; umask; echo mine")] * 3
    client = server.client()
    for operation in operations:
        [outcome] = run(client, operation)
        assert (outcome.stdout, outcome.stderr, outcome.exit_code) == (b"0077\nmine\n", b"", 0)
