"""Making a profile that works: host keys, a key pair, what the site says of itself, and the file."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from towline.config import write
from towline.config.files import read_config
from towline.config.paths import config_dir
from towline.config.profile import ClusterProfile
from towline.engine.doctor.checks import examine
from towline.engine.doctor.facts import Facts, Finding, Login
from towline.engine.doctor.gather import Opener, entered, gather
from towline.engine.doctor.network import login as check_login
from towline.engine.doctor.scheduler import accounts, gpu_styles
from towline.engine.reaching import access_of, open_remote
from towline.models.errors import ConfigError
from towline.models.plan import Verdict
from towline.models.site import Partition
from towline.remote.base import Operation
from towline.remote.ssh import keys
from towline.remote.ssh.keys import HostKey
from towline.slurm.doctor import Answer, Role, Room, candidates, candidates_call, parse_answer

KEY_NAMES = ("id_ed25519", "id_ecdsa", "id_rsa")
_NOWHERE = "/towline-setup"
"""The root of a draft whose root is not chosen yet; nothing is made there."""
_KINDS = ("lustre", "gpfs", "beegfs", "ceph", "nfs", "fuse")


@dataclass(frozen=True)
class Draft:
    """Settings that were given or found so far.

    Attributes:
        name: the profile's name; empty until it is known.
        hosts, user, port, key, known_hosts: how the login hosts are reached.
        partition, account, root, image, setup, gpu_request: as in a profile; empty when not given.
    """

    name: str = ""
    hosts: tuple[str, ...] = ()
    user: str = ""
    port: int | None = None
    key: str = ""
    known_hosts: str = ""
    partition: str = ""
    account: str = ""
    root: str = ""
    image: str = ""
    setup: str = ""
    gpu_request: str = ""

    def values(self) -> dict[str, object]:
        """The settings as a file has them, without those that are not given."""
        values: dict[str, object] = {
            "hosts": list(self.hosts),
            "user": self.user,
            "port": self.port,
            "identity_file": self.key,
            "known_hosts_file": self.known_hosts,
            "root": self.root,
            "partition": self.partition,
            "account": self.account,
            "image": self.image,
            "gpu_request": self.gpu_request if self.gpu_request != "gres" else "",
            "setup": self.setup,
        }
        return {name: value for name, value in values.items() if value not in (None, "", [])}

    def profile(self) -> ClusterProfile:
        """The profile that this would be.

        Raises:
            UsageError: a value cannot be right.
        """
        return write.make_profile(self.name or "setup", {**self.values(), "root": self.root or _NOWHERE})


@dataclass(frozen=True)
class NewHostKeys:
    """A login host whose key is not known here.

    Attributes:
        host: the host.
        keys: what it shows; empty when it cannot be asked directly.
        file: where its keys would be kept.
    """

    host: str
    keys: tuple[HostKey, ...]
    file: Path


@dataclass(frozen=True)
class Site:
    """What the cluster said of itself.

    Attributes:
        cluster: Slurm's name of it.
        partitions: in the order that Slurm lists them.
        accounts: the user's.
        needs_account: whether Slurm refuses a job that names none.
        roots: directories that can be written and that all login hosts see, the likeliest first.
    """

    cluster: str
    partitions: tuple[Partition, ...]
    accounts: tuple[str, ...]
    needs_account: bool
    roots: tuple[Room, ...]

    @property
    def default_partition(self) -> str:
        """The partition that a job goes to by default: the site's choice, else the first with GPUs."""
        chosen = [part.name for part in self.partitions if part.default]
        with_gpus = [part.name for part in self.partitions if part.gpus_per_node]
        return next(iter([*chosen, *with_gpus, *(part.name for part in self.partitions)]), "")


# --- The way in ---


def own_keys(home: Path) -> tuple[Path, ...]:
    """The private keys that ssh would try by itself, as far as they are there."""
    return tuple(path for name in KEY_NAMES if (path := home / ".ssh" / name).is_file())


async def has_agent_keys() -> bool:
    """Whether an agent holds keys, so that none need be named."""
    return bool((await keys.ask_agent()).keys)


async def new_host_keys(draft: Draft) -> tuple[NewHostKeys, ...]:
    """The login hosts whose keys are not known here, with what they show."""
    found = await asyncio.gather(*(_new_keys(draft.profile(), host) for host in draft.hosts))
    return tuple(each for each in found if each)


def take_host_keys(new: NewHostKeys) -> None:
    """Keep a host's keys as known from now on; ask the person first.

    Raises:
        ConfigError: the file cannot be written.
    """
    keys.take_host_keys(new.keys, new.file)


async def make_key(path: Path, comment: str) -> str:
    """Make a key pair; the result is the public key's line.

    Raises:
        ConfigError: it could not be made, or there is such a file.
    """
    if keys.key_mode(path) is not None:
        raise ConfigError(f"there is a file {path} already", fix="Choose another name with --key.")
    return await keys.make_key(path, comment)


async def install_key(draft: Draft) -> None:
    """Put the draft's public key on the cluster; ssh asks for the password on the terminal.

    Raises:
        AccessRefused, ConfigError: it is not there now.
    """
    profile = draft.profile()
    if profile.identity_file is None:
        raise ConfigError("no key is named", fix="Name one with --key.")
    await keys.install_key(access_of(profile), profile.hosts[0], keys.public_key(profile.identity_file))


async def way_in(draft: Draft, *, opener: Opener = open_remote) -> Facts:
    """What an examination sees with what is known so far."""
    return await gather(draft.profile(), opener=opener)


def login_refused(facts: Facts) -> bool:
    """Whether a login host took the connection and refused the key."""
    return any(
        each.verdict is Verdict.FAILS and "refused the key" in each.evidence for each in check_login(facts)
    )  # fmt: skip


# --- The site ---


async def look_around(draft: Draft, facts: Facts, *, opener: Opener = open_remote) -> Site:
    """What the site is, from an examination and a look for places.

    Raises:
        ConfigError: no login host with Slurm was reached.
    """
    answer = facts.answer
    if answer is None or not answer.partitions:
        raise ConfigError("the cluster could not be asked what it is", fix="Mend what the checks above say.")
    roots = await _roots(draft.profile(), facts.reached, opener)
    trial = answer.reply("trial-none")
    needs = not draft.account and trial is not None and not trial.ok and "account" in trial.words.lower()
    return Site(answer.config.get("ClusterName", ""), answer.partitions, accounts(answer), needs, roots)


async def settle(draft: Draft, before: Facts, *, opener: Opener = open_remote) -> tuple[Draft, tuple[Finding, ...]]:
    """The draft with a way to ask for GPUs that sbatch takes on its partition, and what the doctor says of it.

    Args:
        draft: everything else is chosen.
        before: what `way_in` saw.
        opener: how login hosts are reached.
    """
    facts = await gather(draft.profile(), opener=opener, before=entered(before))
    styles = gpu_styles(facts.answer) if facts.answer else ()
    if styles and not draft.gpu_request:
        draft = replace(draft, gpu_request=styles[0])
    return draft, examine(replace(facts, profile=draft.profile(), drafted=True))


def wrong_values(draft: Draft, findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """The failures that another value would mend, so that this one is not to be written."""
    chosen = {"root", "root-shared"}
    chosen |= {"partition"} if draft.partition else set()
    chosen |= {"account"} if draft.account else set()
    return tuple(each for each in findings if each.verdict is Verdict.FAILS and each.id in chosen)


async def _roots(profile: ClusterProfile, reached: Sequence[Login], opener: Opener) -> tuple[Room, ...]:
    probe = f".towline-setup-{secrets.token_hex(8)}"
    hosts = [login.host for login in reached]
    try:
        found = candidates(await _places(profile, hosts[0], probe, "write", opener))
        seen = [
            {room.path for room in candidates(await _places(profile, host, probe, "look", opener))}
            for host in hosts[1:]
        ]
    finally:
        await _places(profile, hosts[0], probe, "remove", opener)
    shared = [room for room in found if all(room.path in paths for paths in seen)]
    return tuple(sorted(shared, key=lambda room: not room.kind.startswith(_KINDS)))


async def _places(profile: ClusterProfile, host: str, probe: str, role: Role, opener: Opener) -> Answer:
    only = profile.model_copy(update={"hosts": (host,)}) if profile.transport == "ssh" else profile
    call = candidates_call(probe, role, profile.setup)
    remote = opener(only)
    try:
        outcome = await remote.run(Operation(call.name, call.script, call.args, call.files))
    finally:
        await remote.close()
    return parse_answer(outcome.stdout.decode("utf-8", "replace"))


async def _new_keys(profile: ClusterProfile, host: str) -> NewHostKeys | None:
    config, error = await keys.ssh_config(access_of(profile), host)
    if error:
        raise ConfigError(
            "ssh cannot read its configuration", why=error, fix=f"Mend it until this works: ssh -G {host}"
        )

    def first(keyword: str, otherwise: str) -> str:
        return next(iter(config.get(keyword, ())), otherwise)

    hostname, port = first("hostname", host), int(first("port", "22"))
    files = " ".join(config.get("userknownhostsfile", ())).split()
    name = hostname if port == 22 else f"[{hostname}]:{port}"
    everywhere = [*files, *" ".join(config.get("globalknownhostsfile", ())).split()]
    proxied = any(first(word, "none") != "none" for word in ("proxyjump", "proxycommand"))
    if proxied or await keys.known_keys(first("hostkeyalias", name), everywhere):
        return None
    return NewHostKeys(host, await keys.scan(hostname, port), _known_hosts(files))


def _known_hosts(files: Sequence[str]) -> Path:
    return Path(files[0] if files else "~/.ssh/known_hosts").expanduser()


# --- The file ---


def profile_path(name: str) -> Path:
    """The file that a profile of that name is written to."""
    return config_dir() / "clusters.d" / f"{name}.toml"


def profile_text(draft: Draft) -> str:
    """What is written there."""
    return write.profile_toml(draft.name, draft.values())


def save(draft: Draft, *, default: bool, replace_it: bool) -> Path:
    """Write the profile.

    Args:
        draft: the profile.
        default: make it the default one.
        replace_it: write over a profile of that name that setup has written.

    Raises:
        ConfigError: there is such a profile, or the file cannot be written.
    """
    directory, path = config_dir(), profile_path(draft.name)
    draft.profile()
    known = read_config(directory).profiles.get(draft.name)
    if known and not (replace_it and known.source == path):
        raise ConfigError(
            f"there is a cluster {draft.name!r} already, in {known.source}",
            fix="Choose another name, or give --force to write over a file of that name in clusters.d.",
        )
    write.write_private(path, profile_text(draft))
    if default:
        main = directory / "config.toml"
        text = main.read_text(encoding="utf-8") if main.exists() else ""
        write.write_private(main, write.with_default(text, draft.name))
    return path


def write_alias(draft: Draft, alias: str, home: Path) -> Path:
    """Write a `Host` block for the first login host into ~/.ssh/config.

    Raises:
        ConfigError: there is such an alias, or the file cannot be written.
    """
    path = home / ".ssh" / "config"
    lines = [f"Host {alias}", f"    HostName {draft.hosts[0]}", f"    User {draft.user}"]
    lines += [f"    Port {draft.port}"] if draft.port else []
    lines += [f"    IdentityFile {draft.key}"] if draft.key else []
    lines += [f"    UserKnownHostsFile {draft.known_hosts}"] if draft.known_hosts else []
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    if any(alias in line.split()[1:] for line in text.splitlines() if line.strip().lower().startswith("host ")):
        raise ConfigError(f"{path} has a Host {alias} already", fix="Choose another alias.")
    write.write_private(path, "\n".join([*lines, "", text]))
    return path
