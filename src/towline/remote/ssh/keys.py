"""Keys and host keys on this machine, by OpenSSH's own tools: what is there, what a host shows, and making new ones."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import stat
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from towline.models.errors import AccessRefused, ConfigError
from towline.remote.ssh.access import Access, parse_config

_SECONDS = 15.0
"""Seconds for a tool that only looks; ssh-keyscan and a login over the network may take as long."""
_HOST_KEY = re.compile(r"Server host key: (\S+) (SHA256:\S+)")
_KNOWN = re.compile(r"^\S+ (\S+) (SHA256:\S+)")
_LISTED = re.compile(r"^\d+ (SHA256:\S+) .*\((\S+)\)$")


_INSTALL = (
    "exec /bin/sh -c '"
    "umask 077; mkdir -p .ssh && touch .ssh/authorized_keys && read -r key && "
    'grep -qxF "$key" .ssh/authorized_keys || echo "$key" >>.ssh/authorized_keys'
    "'"
)
"""Adds the line on stdin to the account's keys; good for any login shell, csh too."""


@dataclass(frozen=True)
class HostKey:
    """A host's key.

    Attributes:
        kind: for example `ED25519`.
        fingerprint: `SHA256:…`.
        line: the key as a known hosts file has it; empty when only the fingerprint is known.
    """

    kind: str
    fingerprint: str
    line: str = ""


@dataclass(frozen=True)
class Agent:
    """The authentication agent.

    Attributes:
        socket: its socket; empty when SSH_AUTH_SOCK is not set.
        answers: whether it can be asked.
        keys: fingerprints of the keys it holds.
    """

    socket: str = ""
    answers: bool = False
    keys: tuple[str, ...] = ()


@dataclass(frozen=True)
class Ran:
    """How a tool ended.

    Attributes:
        status: its exit status; None when it took too long or is not there.
        out, err: what it wrote.
    """

    status: int | None
    out: str = ""
    err: str = ""


async def ssh_version() -> str:
    """What `ssh -V` says; empty when there is no ssh."""
    ran = await _run(("ssh", "-V"))
    return (ran.err or ran.out).strip().partition(",")[0] if ran.status == 0 else ""


async def ssh_config(access: Access, host: str) -> tuple[dict[str, tuple[str, ...]], str]:
    """What ssh makes of its configuration for that host, and its words when it cannot read it."""
    ran = await _run(("ssh", *access.options(), "-G", "--", host))
    if ran.status != 0:
        return {}, ran.err.strip() or "ssh -G did not answer"
    return parse_config(ran.out), ""


async def ask_agent() -> Agent:
    """The agent that ssh would use, and its keys."""
    socket = os.environ.get("SSH_AUTH_SOCK", "")
    if not socket:
        return Agent()
    ran = await _run(("ssh-add", "-l"))
    # ssh-add(1): 0 it holds keys, 1 it holds none, 2 it cannot be reached
    keys = tuple(found[1] for line in ran.out.splitlines() if (found := _LISTED.match(line)))
    return Agent(socket, ran.status in (0, 1), keys)


async def fingerprint(path: Path) -> str:
    """`SHA256:…` of a key file; empty when it holds none."""
    ran = await _run(("ssh-keygen", "-l", "-f", str(path)))
    found = _LISTED.match(ran.out.strip())
    return found[1] if found else ""


async def is_encrypted(path: Path) -> bool:
    """Whether a private key wants a passphrase. It is not told which: the empty one is tried."""
    ran = await _run(("ssh-keygen", "-y", "-P", "", "-f", str(path)))
    return ran.status != 0 and "incorrect passphrase" in ran.err


async def known_keys(name: str, files: Sequence[str]) -> tuple[HostKey, ...]:
    """The keys that known hosts files have for a name (`host` or `[host]:port`); hashed names are found, too."""
    found: list[HostKey] = []
    for file in files:
        path = os.path.expanduser(file)  # noqa: ASYNC240  looks up one user at most
        if os.path.isfile(path):  # noqa: ASYNC240
            ran = await _run(("ssh-keygen", "-l", "-F", name, "-f", path))
            found += [HostKey(m[1], m[2]) for line in ran.out.splitlines() if (m := _KNOWN.match(line))]
    return tuple(found)


async def scan(hostname: str, port: int) -> tuple[HostKey, ...]:
    """The keys that a host shows to anybody; nothing when it cannot be reached directly."""
    ran = await _run(("ssh-keyscan", "-T", "5", "-p", str(port), "--", hostname))
    keys: list[HostKey] = []
    for line in ran.out.splitlines():
        if line and not line.startswith("#"):
            shown = await _run(("ssh-keygen", "-l", "-f", "-"), stdin=line + "\n")
            if found := _LISTED.match(shown.out.strip()):
                keys.append(HostKey(found[2], found[1], line))
    return tuple(keys)


async def try_login(access: Access, host: str) -> str:
    """What `ssh -v` says of one login that runs nothing; for finding out why logins fail."""
    limit = ("-o", f"ConnectTimeout={access.connect_timeout}", "-o", "ControlPath=none")
    # ssh takes the first value that it is given for an option.
    argv = ("ssh", "-v", "-o", "LogLevel=DEBUG1", *access.options(), "-T", "-x", *limit, "--", host, "exit")
    ran = await _run(argv, seconds=access.connect_timeout * 2 + _SECONDS)
    return ran.err


def shown_key(words: str) -> HostKey | None:
    """The host's key in the words of `try_login`; it is there also when the way goes over other hosts."""
    found = _HOST_KEY.search(words)
    return HostKey(found[1].removeprefix("ssh-").upper(), found[2]) if found else None


# --- Making and installing ---


async def make_key(path: Path, comment: str) -> str:
    """Make a key pair without a passphrase; the result is the public key's line.

    Raises:
        ConfigError: ssh-keygen could not.
    """
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    ran = await _run(("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", comment, "-f", str(path)))
    if ran.status != 0:
        raise ConfigError(f"the key {path} could not be made", why=(ran.err or ran.out).strip())
    return public_key(path)


def public_key(path: Path) -> str:
    """The public key's line that belongs to a private key's file.

    Raises:
        ConfigError: there is none.
    """
    try:
        return path.with_name(path.name + ".pub").read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(
            f"there is no public key beside {path}",
            why=str(error),
            fix=f"Make it: ssh-keygen -y -f {path} > {path}.pub",
        ) from None


async def install_key(access: Access, host: str, public: str) -> None:
    """Add a public key to the account on a host. ssh itself asks on the terminal for whatever it needs.

    Raises:
        AccessRefused: the login failed, or the file could not be written there.
    """
    asking = ("-o", "BatchMode=no", "-o", "IdentitiesOnly=no", "-o", "ControlPath=none")
    argv = ("ssh", *asking, *access.options(), "-T", "-x", "--", host, _INSTALL)
    status = await _on_terminal(argv, public + "\n")
    if status != 0:
        raise AccessRefused(
            f"the public key could not be installed on {host}",
            why=f"ssh ended with exit status {status}.",
            fix=f"Add this line to ~/.ssh/authorized_keys there: {public}",
        )


def take_host_keys(keys: Sequence[HostKey], file: Path) -> None:
    """Add keys to a known hosts file, as they were shown.

    Raises:
        ConfigError: it cannot be written.
    """
    try:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with open(file, "a", encoding="utf-8", opener=lambda name, flags: os.open(name, flags, 0o600)) as known:
            known.writelines(f"{key.line}\n" for key in keys if key.line)
    except OSError as error:
        raise ConfigError(f"{file} cannot be written", why=error.strerror or str(error)) from None


def key_mode(path: Path) -> int | None:
    """Permission bits of a file; None when there is none."""
    try:
        return stat.S_IMODE(path.stat().st_mode)
    except OSError:
        return None


async def _on_terminal(argv: Sequence[str], stdin: str) -> int:
    """Run a program that may talk to the person: its words go to the terminal, its questions come from there."""
    with tempfile.TemporaryFile() as data:
        data.write(stdin.encode())
        data.seek(0)
        process = await asyncio.create_subprocess_exec(*argv, stdin=data)
        return await process.wait()


async def _run(argv: Sequence[str], *, stdin: str = "", seconds: float = _SECONDS) -> Ran:
    if not shutil.which(argv[0]):
        return Ran(None, err=f"{argv[0]} is not installed")
    process = await asyncio.create_subprocess_exec(
        *argv,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={**os.environ, "LC_ALL": "C", "SSH_ASKPASS_REQUIRE": "never"},
    )
    try:
        out, err = await asyncio.wait_for(process.communicate(stdin.encode()), seconds)
    except asyncio.TimeoutError:
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()
        return Ran(None, err=f"{argv[0]} did not end within {seconds:g} s")
    return Ran(process.returncode, out.decode(errors="replace"), err.decode(errors="replace"))
