"""An in-memory remote for tests of everything above this room: a function answers the operations."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from dataclasses import replace

from towline.remote.base import Operation, Outcome, Sink

Handler = Callable[[Operation], "Outcome | Awaitable[Outcome]"]
"""Answers one operation, at once or later; what it raises reaches the caller of `run`."""


class InMemory:
    """Hands each operation to a handler and records it.

    Attributes:
        calls: operations so far.
        operations: all of them, in order.
        closed: `close` was called.
    """

    def __init__(self, handler: Handler) -> None:
        self.calls = 0
        self.operations: list[Operation] = []
        self.closed = False
        self._handler = handler

    async def run(self, operation: Operation, *, sink: Sink | None = None) -> Outcome:
        """Record the operation and pass on the handler's answer; a sink gets its stdout."""
        self.calls += 1
        self.operations.append(operation)
        answer = self._handler(operation)
        outcome = await answer if inspect.isawaitable(answer) else answer
        if sink is None:
            return outcome
        if outcome.stdout:
            sink(outcome.stdout)
        return replace(outcome, stdout=b"")

    async def close(self) -> None:
        """Note that it was closed."""
        self.closed = True
