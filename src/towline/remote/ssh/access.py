"""How to reach a cluster's login hosts: the profile's settings as ssh options, and what ssh makes of them."""

from __future__ import annotations

import hashlib
import os
import shlex
import shutil
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from towline.models.errors import ConfigError

_DECIDES = (
    "hostname",
    "port",
    "user",
    "identityfile",
    "certificatefile",
    "identityagent",
    "proxyjump",
    "proxycommand",
    "hostkeyalias",
    "userknownhostsfile",
    "bindaddress",
)
"""What of ssh's configuration makes one connection different from another."""


@dataclass(frozen=True)
class Access:
    """A profile's settings for ssh; what is not given is left to the user's ~/.ssh/config.

    Attributes:
        user: login name; empty for ssh's choice.
        port: TCP port; None for ssh's choice.
        identity_file: the private key to use, and no other.
        known_hosts_file: where host keys are looked up and added.
        connect_timeout: seconds for the TCP connection and the server's greeting.
        keepalive: seconds of silence after which the server is asked whether it is there; after the third question
            without an answer the connection is given up. It counts for connections that Towline opens.
        config_file: a file to read instead of ~/.ssh/config and the system's.
    """

    user: str = ""
    port: int | None = None
    identity_file: Path | None = None
    known_hosts_file: Path | None = None
    connect_timeout: int = 10
    keepalive: int = 15
    config_file: Path | None = None

    def options(self) -> tuple[str, ...]:
        """The options that every ssh command for this profile gets."""
        given = [
            *(("-F", str(self.config_file)) if self.config_file else ()),
            *(("-l", self.user) if self.user else ()),
            *(("-p", str(self.port)) if self.port is not None else ()),
        ]
        if self.identity_file:
            given += ["-o", f"IdentityFile={quoted(self.identity_file)}", "-o", "IdentitiesOnly=yes"]
        if self.known_hosts_file:
            given += ["-o", f"UserKnownHostsFile={quoted(self.known_hosts_file)}"]
        return (*given, "-o", "BatchMode=yes", "-o", "LogLevel=ERROR")

    def check(self) -> None:
        """See that ssh is there and the key file is private.

        Raises:
            ConfigError: it is not; the fix has the command.
        """
        if not shutil.which("ssh"):
            raise ConfigError("there is no ssh on this machine", fix="Install OpenSSH's client (openssh-client).")
        if self.identity_file:
            _check_key(self.identity_file)


_LENT = (
    "A key that is mounted into a container cannot be changed from inside: mount it with the uid of the service and "
    "mode 0400 (a Kubernetes secret: `defaultMode: 0400` and the pod's `fsGroup` unset), or with the service's group "
    "and mode 0440, or hand over an agent's socket in SSH_AUTH_SOCK instead of the file."
)


def _check_key(path: Path) -> None:
    try:
        found = path.stat()
    except OSError as error:
        raise ConfigError(
            f"the key file {path} cannot be used",
            why=error.strerror or str(error),
            fix="Put the key that the cluster knows there, or name its file as `identity_file` of the profile.",
        ) from None
    if not os.access(path, os.R_OK):
        raise ConfigError(
            f"the key file {path} cannot be used",
            why=f"It belongs to uid {found.st_uid} (mode {stat.S_IMODE(found.st_mode):o}); this is uid {os.getuid()}.",
            fix=_LENT,
        )
    # A key that another user lends us (a mounted secret) can only be read through those bits.
    too_open = 0o077 if found.st_uid == os.getuid() else stat.S_IROTH | stat.S_IWOTH | stat.S_IWGRP
    if found.st_mode & too_open:
        mend = found.st_uid == os.getuid() and not os.statvfs(path).f_flag & os.ST_RDONLY
        raise ConfigError(
            f"the key file {path} is open to other users (mode {stat.S_IMODE(found.st_mode):o})",
            why="Whoever can read a private key can log in with it.",
            fix=f"chmod 600 {shlex.quote(str(path))}" if mend else _LENT,
        )


def quoted(path: Path | str) -> str:
    """A path as the value of an ssh option: spaces kept, no percent token."""
    return '"' + str(path).replace("%", "%%") + '"'


def parse_config(text: str) -> dict[str, tuple[str, ...]]:
    """What `ssh -G` printed, as keyword → values."""
    config: dict[str, tuple[str, ...]] = {}
    for line in text.splitlines():
        keyword, _, value = line.partition(" ")
        config[keyword.lower()] = (*config.get(keyword.lower(), ()), value)
    return config


def connection_name(host: str, config: Mapping[str, tuple[str, ...]]) -> str:
    """A short name for the connection: the same for all processes whose ssh would connect in the same way.

    ssh's own %C is not used: newer versions hash the jump host into it, and then the command that attaches (which
    has a ProxyCommand instead) would look for another socket than the master made.
    """
    parts = (host, *(f"{keyword}={value}" for keyword in _DECIDES for value in config.get(keyword, ())))
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]
