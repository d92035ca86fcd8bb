"""From a profile to the way to its login hosts."""

from __future__ import annotations

from towline.config.profile import ClusterProfile
from towline.remote.base import Remote
from towline.remote.files.transfer import Transfers
from towline.remote.local import Local
from towline.remote.ssh.access import Access
from towline.remote.ssh.openssh import OpenSSH

_HERE = "local"
"""The `transfer_host` that stands for this machine."""


def open_remote(profile: ClusterProfile) -> Remote:
    """The remote that the profile describes; nothing is connected yet."""
    if profile.transport == "local":
        return Local()
    return OpenSSH(profile.hosts, access_of(profile), channels=profile.channels)


def open_transfers(profile: ClusterProfile, remote: Remote) -> Transfers:
    """What moves files: over the login hosts' own remote, unless the profile has a host for that.

    Args:
        profile: the cluster's settings.
        remote: of the login hosts.
    """
    if not profile.transfer_host:
        return Transfers(remote)
    if profile.transfer_host == _HERE:
        mover: Remote = Local()
    else:
        mover = OpenSSH((profile.transfer_host,), access_of(profile), channels=profile.channels)
    pairs = (pair.partition(":") for pair in profile.path_map)
    return Transfers(mover, path_map={there: elsewhere for there, _, elsewhere in pairs}, own=True)


def access_of(profile: ClusterProfile) -> Access:
    """The profile's settings for ssh."""
    return Access(
        user=profile.user or "",
        port=profile.port,
        identity_file=profile.identity_file,
        known_hosts_file=profile.known_hosts_file,
        keepalive=profile.keepalive,
    )
