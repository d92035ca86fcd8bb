"""What the engine's operations share: a cluster's settings, the way to it, and the store."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from towline.config.profile import ClusterProfile
from towline.engine.store import Store
from towline.remote.base import Operation, Outcome, Remote, Sink
from towline.slurm.calls import Call

if TYPE_CHECKING:
    from towline.engine.watching.poller import Poller

CALL_SECONDS = 120.0
"""Time limit of one script; a controller that is away takes about 9 s to fail each query."""


@dataclass(frozen=True)
class Session:
    """One cluster's settings, the way to it, and the local store."""

    profile: ClusterProfile
    remote: Remote
    store: Store

    @cached_property
    def poller(self) -> Poller:
        """This process's part in looking at the cluster's jobs."""
        from towline.engine.watching.poller import Poller

        return Poller(self)

    async def run(self, operation: Operation, *, sink: Sink | None = None) -> Outcome:
        """Run an operation on the cluster."""
        return await self.remote.run(operation, sink=sink)

    async def call(self, call: Call) -> Outcome:
        """Run one of the Slurm room's scripts."""
        operation = Operation(
            call.name, call.script, call.args, call.files, CALL_SECONDS, call.survives, repeats=call.repeats
        )
        return await self.remote.run(operation)
