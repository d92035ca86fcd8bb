"""What ssh's own words mean: whether trying again could help, and what the user can do.

OpenSSH has no codes for its failures, only these sentences; they are not translated. They are looked for only in what
a login attempt printed, never in what a command printed: Slurm says "Connection refused" too.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from towline.models.errors import AccessRefused, ConfigError, TowlineError


class Kind(Enum):
    """What can be done about a login that failed."""

    REFUSED = "refused"
    """Key, host key or account: another try is the same."""
    SETUP = "setup"
    """The local side has to be mended."""
    BUSY = "busy"
    """The server dropped the connection before the login (MaxStartups does that): soon again."""
    AWAY = "away"
    """The host did not answer: another host, or later."""


@dataclass(frozen=True)
class LoginTarget:
    """Who logs in where, as ssh's configuration resolves it; for messages.

    Attributes:
        alias: the host as the profile names it.
        hostname, user, port: after ~/.ssh/config.
        keys: the private key files that ssh may try.
        known_hosts: the files of known host keys.
    """

    alias: str
    hostname: str
    user: str
    port: str
    keys: tuple[str, ...] = ()
    known_hosts: tuple[str, ...] = ()

    @classmethod
    def of(cls, alias: str, config: Mapping[str, tuple[str, ...]]) -> LoginTarget:
        """Take it from what `ssh -G` printed: keyword → values."""

        def first(keyword: str) -> str:
            return next(iter(config.get(keyword, ())), "")

        files = " ".join(config.get("userknownhostsfile", ())).split()
        keys = config.get("identityfile", ())
        return cls(alias, first("hostname") or alias, first("user"), first("port") or "22", keys, tuple(files))

    def __str__(self) -> str:
        where = self.hostname if self.hostname == self.alias else f"{self.alias} ({self.hostname})"
        port = "" if self.port == "22" else f" port {self.port}"
        return f"{self.user}@{where}{port}"


@dataclass(frozen=True)
class Failure:
    """Why a login failed.

    Attributes:
        kind: what can be done.
        reason: one line for a list of hosts and their reasons.
        error: what to raise for kinds that no other host or time would change.
    """

    kind: Kind
    reason: str
    error: TowlineError | None = None


_TABLE: tuple[tuple[str, Kind, str], ...] = (
    (r"REMOTE HOST IDENTIFICATION HAS CHANGED", Kind.REFUSED, "changed"),
    (r"No \S+ host key is known for", Kind.REFUSED, "unknown"),
    (r"REVOKED HOST KEY|host key .* revoked", Kind.REFUSED, "revoked"),
    (r"Host key verification failed", Kind.REFUSED, "unknown"),
    (
        r"Permission denied \([^)]*\)|Too many authentication failures|No more authentication methods",
        Kind.REFUSED,
        "key",
    ),
    (r"Your (?:account|password) has expired|This account is currently not available", Kind.REFUSED, "account"),
    (
        r"Bad configuration option|Bad owner or permissions|terminating, \d+ bad configuration|line \d+: ",
        Kind.SETUP,
        "",
    ),
    (r"No user exists for uid", Kind.SETUP, ""),
    # Before what ssh says when a jump host has closed its side for such a reason.
    (r"(?m)^ssh: (?:connect to host|Could not resolve)", Kind.AWAY, ""),
    (r"kex_exchange_identification: (?:read: )?Connection|Exceeded MaxStartups|Connection reset by", Kind.BUSY, ""),
    (r"Connection closed by", Kind.BUSY, ""),
)
_NOISE = re.compile(r"^(?:@+|Warning: Permanently added|\*\*|debug\d)|^\s*$")
_LOADING = re.compile(r'^(?:Load key "|Warning: Identity file|sign_and_send_pubkey|identity_sign).*', re.MULTILINE)


def diagnose(words: str, target: LoginTarget) -> Failure:
    """Say what a failed login was, from what ssh printed."""
    for pattern, kind, case in _TABLE:
        if found := re.search(pattern, words):
            reason = _line_of(words, found)
            return Failure(kind, reason, _error(kind, case, words, reason, target))
    return Failure(Kind.AWAY, last_line(words) or "ssh ended without a word")


def last_line(words: str) -> str:
    """The last line that says something."""
    lines = [line.strip() for line in words.splitlines() if not _NOISE.match(line)]
    return lines[-1] if lines else ""


def _line_of(words: str, found: re.Match[str]) -> str:
    start = words.rfind("\n", 0, found.start()) + 1
    return words[start:].partition("\n")[0].strip("@ \r")


def _error(kind: Kind, case: str, words: str, reason: str, target: LoginTarget) -> TowlineError | None:
    if kind is Kind.SETUP:
        return ConfigError(
            "ssh cannot work with its configuration here", why=reason, fix="Mend it until `ssh -G` works."
        )
    if kind is not Kind.REFUSED:
        return None
    if case == "changed":
        return _changed_key(words, target)
    if case in ("unknown", "revoked"):
        return _unknown_key(reason, target)
    return _refused_key(words, reason, target)


def _changed_key(words: str, target: LoginTarget) -> AccessRefused:
    print_ = re.search(r"fingerprint for the (\S+) key sent by the remote host is\s+(\S+?)\.?\s", words)
    known = re.search(r"Offending \S+ key in (\S+?):(\d+)", words)
    shown = f"It shows the {print_[1]} key {print_[2]}" if print_ else "It shows another key"
    place = f", while {known[1]} line {known[2]} has a different one" if known else " than before"
    name = target.hostname if target.port == "22" else f"[{target.hostname}]:{target.port}"
    file = f" -f {known[1]}" if known else ""
    return AccessRefused(
        f"the host key of {target.alias} has changed; nothing was sent",
        why=f"{shown}{place}. Either the host was set up anew, or somebody is between you and it.",
        fix=f"Ask the site for the host's fingerprint. Only if it is the new one: ssh-keygen -R '{name}'{file}",
    )


def _unknown_key(reason: str, target: LoginTarget) -> AccessRefused:
    files = ", ".join(target.known_hosts) or "the known hosts file"
    return AccessRefused(
        f"the host key of {target.alias} could not be verified",
        why=f"ssh says: {reason}",
        fix=f"Check its fingerprint with the site and connect once by hand (`ssh {target.alias}`), "
        f"or add the key to {files}.",
    )


def _refused_key(words: str, reason: str, target: LoginTarget) -> AccessRefused:
    tried = ", ".join(target.keys) or "the agent's keys"
    notes = [f"Keys that ssh may have tried: {tried}.", *(line.strip() for line in _LOADING.findall(words))]
    return AccessRefused(
        f"{target} refused the login",
        why="\n".join([f"ssh says: {reason}", *notes]),
        fix=f"See why with `ssh -v {target.alias}`. Is the public key on the cluster, the user name right, the agent "
        "running? Where a login asks for a one-time code, open a shared connection first (ControlMaster) and leave it "
        "open: Towline uses it.",
    )
