"""What the engine's operations share: a cluster's settings, the way to it, and the store."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar, cast

from towline.config.profile import ClusterProfile
from towline.engine.store import Store
from towline.remote.base import Operation, Outcome, Remote, Sink
from towline.slurm.calls import Call

Part = TypeVar("Part")

CALL_SECONDS = 120.0
"""Time limit of one script; a controller that is away takes about 9 s to fail each query."""


@dataclass(frozen=True)
class Session:
    """One cluster's settings, the way to it, and the local store."""

    profile: ClusterProfile
    remote: Remote
    store: Store
    _parts: dict[Callable[[Session], Any], Any] = field(default_factory=dict, init=False, repr=False, compare=False)

    def part(self, kind: Callable[[Session], Part]) -> Part:
        """The one object of a kind that all operations of this session share; made when it is first asked for."""
        if kind not in self._parts:
            self._parts[kind] = kind(self)
        return cast("Part", self._parts[kind])

    async def run(self, operation: Operation, *, sink: Sink | None = None) -> Outcome:
        """Run an operation on the cluster."""
        return await self.remote.run(operation, sink=sink)

    async def call(self, call: Call) -> Outcome:
        """Run one of the Slurm room's scripts."""
        operation = Operation(
            call.name, call.script, call.args, call.files, CALL_SECONDS, call.survives, repeats=call.repeats
        )
        return await self.remote.run(operation)
