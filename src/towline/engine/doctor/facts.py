"""What a diagnosis is made from, and what comes out of it."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Literal

from towline.config.profile import ClusterProfile
from towline.models.errors import (
    AccessRefused,
    ConfigError,
    RemoteFault,
    SlurmRefused,
    SlurmUnavailable,
    StagingFailed,
    Unreachable,
)
from towline.models.plan import Verdict
from towline.remote.ssh.keys import Agent, HostKey
from towline.slurm.doctor import Answer


class Kind(Enum):
    """What kind of thing a check is about; the value is the exit status when it is the first to fail."""

    HERE = ConfigError.exit_status
    NETWORK = Unreachable.exit_status
    ACCESS = AccessRefused.exit_status
    CLUSTER = RemoteFault.exit_status
    SLURM = SlurmRefused.exit_status
    AWAY = SlurmUnavailable.exit_status
    STORAGE = StagingFailed.exit_status


@dataclass(frozen=True)
class Repair:
    """A fix that can be applied without harm.

    Attributes:
        action: `chmod-here` makes a file of this machine private, `chmod-there` one of the cluster, `mkdir-there` makes
            a private directory on the cluster.
        path: the file or directory.
    """

    action: Literal["chmod-here", "chmod-there", "mkdir-there"]
    path: str


@dataclass(frozen=True)
class Finding:
    """The outcome of one check.

    Attributes:
        id: stable word.
        verdict: `OK`, `FAILS` or `CANNOT_TELL`.
        evidence: what was seen.
        fix: the steps that mend it; may have several lines.
        host: the login host it is about, where there is one check for each.
        kind: what it is about.
        repair: the fix as something that can be applied.
    """

    id: str
    verdict: Verdict
    evidence: str
    fix: str = ""
    host: str = ""
    kind: Kind = Kind.CLUSTER
    repair: Repair | None = None


@dataclass(frozen=True)
class KeyFile:
    """The private key that the profile names.

    Attributes:
        path: the file.
        mode: permission bits; None when there is no such file.
        own: whether it belongs to this user.
        readable: whether this user may read it.
        fingerprint: empty when it is no key.
        encrypted: whether it wants a passphrase.
    """

    path: str
    mode: int | None = None
    own: bool = True
    readable: bool = True
    fingerprint: str = ""
    encrypted: bool = False


@dataclass(frozen=True)
class Here:
    """This machine.

    Attributes:
        ssh: what `ssh -V` says; empty without ssh.
        key: the profile's key file, if it names one.
        agent: the authentication agent.
        found: the key files that ssh tries by itself and that are there, when the profile names none.
    """

    ssh: str = ""
    key: KeyFile | None = None
    agent: Agent = field(default_factory=Agent)
    found: tuple[KeyFile, ...] = ()


@dataclass(frozen=True)
class Login:
    """One login host.

    Attributes:
        host: as the profile names it.
        hostname, user, port: after ~/.ssh/config.
        proxied: whether the way goes over another host or program.
        keys: key files that ssh may try.
        known_files: known hosts files.
        config_error: ssh's words when it cannot read its configuration.
        addresses: what the name resolves to.
        name_error: why it does not.
        banner: the SSH server's greeting.
        port_error: why the port cannot be reached.
        known: host keys known here.
        shown: host keys that it shows to anybody; asked for only when the login failed.
        words: what `ssh -v` says of a login that failed.
        reached: whether an operation ran there.
        problem: why not.
        answer: what it said.
        was_open: whether that went over a connection that was there before, so that no key was tried.
        sessions: how many channels the server allows on a connection, up to `sessions.WANTED`; None when not tried.
    """

    host: str
    hostname: str = ""
    user: str = ""
    port: int = 22
    proxied: bool = False
    keys: tuple[str, ...] = ()
    known_files: tuple[str, ...] = ()
    config_error: str = ""
    addresses: tuple[str, ...] = ()
    name_error: str = ""
    banner: str = ""
    port_error: str = ""
    known: tuple[HostKey, ...] = ()
    shown: tuple[HostKey, ...] = ()
    words: str = ""
    reached: bool = False
    problem: str = ""
    answer: Answer = field(default_factory=Answer)
    was_open: bool = False
    sessions: int | None = None

    @property
    def key_name(self) -> str:
        """The host's name as known hosts files write it."""
        return self.hostname if self.port == 22 else f"[{self.hostname}]:{self.port}"

    @property
    def known_file(self) -> str:
        """The known hosts file that new keys are added to."""
        return self.known_files[0] if self.known_files else "~/.ssh/known_hosts"


@dataclass(frozen=True)
class Facts:
    """Everything that was gathered.

    Attributes:
        profile: the cluster's settings.
        here: this machine.
        logins: the login hosts, in the profile's order.
        deep: what the job found; None when none was asked for.
        drafted: whether the profile is one that `towline setup` is about to write, from flags.
    """

    profile: ClusterProfile
    here: Here
    logins: tuple[Login, ...] = ()
    deep: Answer | None = None
    drafted: bool = False

    def setting(self, name: str) -> str:
        """The beginning of a fix that gives a setting another value: in the profile, or by the flag of setup."""
        return f"Give `--{name}`" if self.drafted else f"Set `{name}` in the profile to"

    @property
    def reached(self) -> tuple[Login, ...]:
        """The login hosts that answered."""
        return tuple(login for login in self.logins if login.reached)

    @property
    def answer(self) -> Answer | None:
        """What the first login host that answered said of the cluster, one with Slurm rather than one without."""
        answers = [login.answer for login in self.reached]
        return next((answer for answer in answers if answer.has("slurm")), next(iter(answers), None))


Check = Callable[[Facts], Sequence[Finding]]


def ok(name: str, evidence: str, *, host: str = "") -> Finding:
    """All is well."""
    return Finding(name, Verdict.OK, evidence, host=host)


def cannot_tell(name: str, evidence: str, fix: str = "", *, host: str = "") -> Finding:
    """It cannot be known."""
    return Finding(name, Verdict.CANNOT_TELL, evidence, fix, host)


def fails(name: str, kind: Kind, evidence: str, fix: str, *, host: str = "", repair: Repair | None = None) -> Finding:
    """It does not work, and this mends it."""
    return Finding(name, Verdict.FAILS, evidence, fix, host, kind, repair)


def by_hand(login: Login, profile: ClusterProfile, *options: str) -> str:
    """A login as a person would type it, with what the profile sets beside ~/.ssh/config."""
    given = [
        *options,
        *(("-p", str(profile.port)) if profile.port else ()),
        *(("-i", str(profile.identity_file)) if profile.identity_file else ()),
        *(("-o", f"UserKnownHostsFile={profile.known_hosts_file}") if profile.known_hosts_file else ()),
    ]
    return shlex.join(["ssh", *given, f"{login.user}@{login.host}"])
