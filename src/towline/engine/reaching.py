"""From a profile to the way to its login hosts."""

from __future__ import annotations

from towline.config.profile import ClusterProfile
from towline.remote.access import Access
from towline.remote.base import Remote
from towline.remote.local import Local
from towline.remote.openssh import OpenSSH


def open_remote(profile: ClusterProfile) -> Remote:
    """The remote that the profile describes; nothing is connected yet."""
    if profile.transport == "local":
        return Local()
    return OpenSSH(profile.hosts, access_of(profile))


def access_of(profile: ClusterProfile) -> Access:
    """The profile's settings for ssh."""
    return Access(
        user=profile.user or "",
        port=profile.port,
        identity_file=profile.identity_file,
        known_hosts_file=profile.known_hosts_file,
    )
