"""Opening a cluster in a hurry: the connection is made while the rest of the program is still being read in."""

from __future__ import annotations

import asyncio
from importlib import import_module
from typing import TYPE_CHECKING

from towline.config.files import resolve
from towline.engine.reaching import open_remote
from towline.remote.ssh.openssh import OpenSSH

if TYPE_CHECKING:
    from towline.engine.cluster import AsyncCluster


async def open_soon(name: str | None) -> AsyncCluster:
    """The cluster with that profile name, or the default one, for a command that is sure to call it.

    Raises:
        ConfigError: there is no such profile, or a setting in it is wrong.
    """
    found = resolve(name)
    remote = open_remote(found.profile)
    if isinstance(remote, OpenSSH):
        remote.warm_up()
    module = await asyncio.to_thread(import_module, "towline.engine.cluster")
    cluster: AsyncCluster = module.AsyncCluster(found.profile, remote=remote)
    cluster.notes += found.notes
    return cluster
