"""Gathering the facts: this machine, the way to each login host, and one or two round trips to each."""

from __future__ import annotations

import asyncio
import os
import secrets
import socket
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from towline.config.profile import ClusterProfile
from towline.container.reference import pyxis_form
from towline.engine.data.preparing import asking_python
from towline.engine.doctor.facts import Facts, Here, KeyFile, Login
from towline.engine.doctor.scheduler import gpu_styles
from towline.engine.reaching import access_of, open_remote
from towline.models.errors import TowlineError
from towline.models.image import Image
from towline.remote.base import Ending, Operation, Outcome, Remote
from towline.remote.ssh import keys
from towline.remote.ssh.openssh import OpenSSH
from towline.slurm.calls import Call
from towline.slurm.doctor import Answer, Role, deep_call, doctor_call, parse_answer

Opener = Callable[[ClusterProfile], Remote]

_SECONDS = 120.0
"""For one look at a login host; a controller that is away takes about 9 s to fail each query."""
_TCP = 10.0


async def gather(profile: ClusterProfile, *, opener: Opener = open_remote, before: Collection[str] = ()) -> Facts:
    """All facts about the cluster, as far as they can be had.

    The first login host that answers leaves a file in the root; the others say whether they see it.

    Args:
        profile: the cluster's settings.
        opener: how login hosts are reached.
        before: hosts that the caller has logged in to; a connection to another that is open says nothing of the key.
    """
    here = await _here(profile)
    if profile.transport == "local":
        here = replace(here, ssh=here.ssh or "not needed")
    hosts = profile.hosts if profile.transport == "ssh" else ("localhost",)
    probe = f".towline-doctor-{secrets.token_hex(8)}"
    logins: list[Login] = []
    rest = list(hosts)
    while rest and not any(login.reached for login in logins):
        logins.append(await _login(profile, rest.pop(0), probe, "write", opener))
    logins += await asyncio.gather(*(_login(profile, host, probe, "look", opener) for host in rest))
    writer = next((login for login in logins if login.answer.fact("root", "probe") == "written"), None)
    if writer:
        await _ask(profile, writer.host, doctor_call(profile.root, probe, "remove", "", ()), opener)
    if profile.identity_file is None:
        here = replace(here, found=await _own_keys(logins))
    seen = tuple(replace(login, was_open=login.was_open and login.host not in before) for login in logins)
    return Facts(profile, here, seen)


async def look_deep(facts: Facts, seconds: int, *, opener: Opener = open_remote) -> Facts:
    """The same facts with what a job of a minute found.

    Args:
        facts: what `gather` made.
        seconds: how long the job may wait in the queue.
        opener: how login hosts are reached.
    """
    host = next((login.host for login in facts.reached if login.answer.has("slurm")), None)
    if host is None or facts.answer is None:
        return replace(facts, deep=Answer())
    outcome = await _ask(facts.profile, host, _deep_call(facts, facts.answer, seconds), opener, seconds + _SECONDS)
    text = outcome.stdout.decode("utf-8", "replace") if isinstance(outcome, Outcome) else ""
    return replace(facts, deep=parse_answer(text))


def entered(facts: Facts) -> frozenset[str]:
    """The hosts that were logged in to, not over a connection from before."""
    return frozenset(login.host for login in facts.reached if not login.was_open)


def job_options(profile: ClusterProfile) -> tuple[str, ...]:
    """The options of sbatch that every job of the profile has."""
    given = (
        ("partition", ",".join(profile.partition)),
        ("account", profile.account or ""),
        ("qos", profile.qos or ""),
    )
    return tuple(f"--{name}={value}" for name, value in given if value)


def _deep_call(facts: Facts, answer: Answer, seconds: int) -> Call:
    profile, tag = facts.profile, secrets.token_hex(6)
    names = profile.partition or tuple(part.name for part in answer.partitions if part.default)
    wants_gpu = any(part.gpus_per_node for part in answer.partitions if part.name in names)
    styles = [style for style in (profile.gpu_request, *gpu_styles(answer)) if style in gpu_styles(answer)]
    gpu = _gpu_option(styles[0], answer) if wants_gpu and styles else ""
    image = pyxis_form(Image.parse(profile.image)) if profile.image else ""
    directory, name = f"{profile.root}/doctor-{tag}", f"towline-doctor-{tag}"
    return deep_call(directory, seconds, name, image, gpu, job_options(profile), profile.setup)


def _gpu_option(style: str, answer: Answer) -> str:
    if style == "gpus-per-node":
        return "--gpus-per-node=1"
    kinds = [kind for part in answer.partitions for kind in part.gpu_types]
    return f"--gres=gpu:{kinds[0]}:1" if style == "gres-typed" and kinds else "--gres=gpu:1"


# --- This machine ---


async def _here(profile: ClusterProfile) -> Here:
    version, agent = await asyncio.gather(keys.ssh_version(), keys.ask_agent())
    return Here(version, await _key_file(profile.identity_file) if profile.identity_file else None, agent)


async def _own_keys(logins: Sequence[Login]) -> tuple[KeyFile, ...]:
    paths = sorted({os.path.expanduser(path) for login in logins for path in login.keys})  # noqa: ASYNC240
    return tuple([await _key_file(Path(path)) for path in paths if keys.key_mode(Path(path)) is not None])


async def _key_file(path: Path) -> KeyFile:
    mode = keys.key_mode(path)
    if mode is None:
        return KeyFile(str(path))
    own = os.stat(path).st_uid == os.geteuid()
    if not os.access(path, os.R_OK):
        return KeyFile(str(path), mode, own, readable=False)
    print_, encrypted = await asyncio.gather(keys.fingerprint(path), keys.is_encrypted(path))
    return KeyFile(str(path), mode, own, True, print_, encrypted)


# --- A login host ---


async def _login(profile: ClusterProfile, host: str, probe: str, role: Role, opener: Opener) -> Login:
    login = Login(host, host) if profile.transport == "local" else await _way(profile, host)
    if login.config_error:
        return login
    partition = ",".join(profile.partition)
    call = doctor_call(
        profile.root, probe, role, partition, job_options(profile), profile.setup, asking_python(profile)
    )
    outcome, channel = await _look(profile, host, call, opener)
    if isinstance(outcome, Outcome) and outcome.ending is Ending.DONE:
        answer = parse_answer(outcome.stdout.decode("utf-8", "replace"))
        if outcome.exit_code:
            words = outcome.stderr.decode("utf-8", "replace").strip()
            answer = replace(answer, complete=True, complaints={**answer.complaints, "no-slurm": words})
        return replace(login, reached=True, answer=answer, was_open=channel.was_open, sessions=channel.sessions)
    problem = outcome if isinstance(outcome, str) else outcome.detail
    return await _why_not(profile, replace(login, problem=problem))


@dataclass(frozen=True)
class _Channel:
    """Of a login: whether the connection was there before, and how many channels it takes."""

    was_open: bool = False
    sessions: int | None = None


async def _look(profile: ClusterProfile, host: str, call: Call, opener: Opener) -> tuple[Outcome | str, _Channel]:
    """The outcome, or why there is none; and what is to be said of the connection."""
    channel = _Channel()

    async def note(remote: Remote) -> None:
        nonlocal channel
        if isinstance(remote, OpenSSH):
            found = await remote.count_sessions()
            channel = _Channel(remote.logins == 0, found.opened)

    return await _ask(profile, host, call, opener, after=note), channel


async def _ask(
    profile: ClusterProfile,
    host: str,
    call: Call,
    opener: Opener,
    seconds: float = _SECONDS,
    after: Callable[[Remote], Awaitable[None]] | None = None,
) -> Outcome | str:
    """The outcome, or why there is none; `after` is called with the connection of one that came to its end."""
    only = profile.model_copy(update={"hosts": (host,)}) if profile.transport == "ssh" else profile
    try:
        remote = opener(only)
        try:
            outcome = await remote.run(Operation(call.name, call.script, call.args, call.files, seconds))
            if after and outcome.ending is Ending.DONE:
                await after(remote)
            return outcome
        finally:
            await remote.close()
    except TowlineError as error:
        return str(error)


async def _way(profile: ClusterProfile, host: str) -> Login:
    config, error = await keys.ssh_config(access_of(profile), host)
    if error:
        return Login(host, host, config_error=error)

    def first(keyword: str, otherwise: str = "") -> str:
        return next(iter(config.get(keyword, ())), otherwise)

    # HostKeyAlias is what known hosts files go by where it is set.
    login = Login(
        host=host,
        hostname=first("hostname", host),
        user=first("user"),
        port=int(first("port", "22")),
        proxied=any(first(word, "none") != "none" for word in ("proxyjump", "proxycommand")),
        keys=config.get("identityfile", ()),
        known_files=tuple(" ".join(config.get("userknownhostsfile", ())).split()),
    )
    alias = first("hostkeyalias")
    known = await keys.known_keys(alias or login.key_name, login.known_files)
    return replace(login if login.proxied else await _tcp(login), known=known)


async def _tcp(login: Login) -> Login:
    loop = asyncio.get_running_loop()
    try:
        found = await loop.getaddrinfo(login.hostname, login.port, type=socket.SOCK_STREAM)
    except OSError as error:
        return replace(login, name_error=error.strerror or str(error))
    login = replace(login, addresses=tuple(dict.fromkeys(str(entry[4][0]) for entry in found)))
    try:
        return replace(login, banner=await asyncio.wait_for(_banner(login.hostname, login.port), _TCP))
    except asyncio.TimeoutError:
        return replace(login, port_error=f"no answer within {_TCP:g} s")
    except OSError as error:
        return replace(login, port_error=_plain(error))


async def _banner(hostname: str, port: int) -> str:
    reader, writer = await asyncio.open_connection(hostname, port)
    try:
        return (await reader.readline())[:200].decode(errors="replace").strip()
    finally:
        writer.close()


def _plain(error: OSError) -> str:
    return os.strerror(error.errno) if error.errno and error.errno > 0 else str(error)


async def _why_not(profile: ClusterProfile, login: Login) -> Login:
    """What `ssh -v` says of a login that failed; not asked where no server answers."""
    if profile.transport == "local" or login.name_error or login.port_error:
        return login
    return replace(login, words=await keys.try_login(access_of(profile), login.host))
