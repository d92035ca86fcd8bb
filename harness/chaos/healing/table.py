"""`Row`: one fault and what must have become of the job; and a list of them that functions register with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from harness.chaos.healing.play import Play

Clients = Literal["both", "there", "nobody"]
Act = Callable[[Play], None]


@dataclass(frozen=True)
class Row:
    """One fault.

    Attributes:
        name: the fault in a few words.
        play: does it.
        state: the state in which the job must end.
        attempts: how many attempts it may take.
        causes: classes of the attempts that failed, in order; None when any will do.
        clients: whether it is played with a living client, with none, or both.
        short: whether it belongs to the short form that runs with the tests.
        needs_cgroups: whether it can be had only where control groups confine jobs.
    """

    name: str
    play: Act
    state: str
    attempts: tuple[int, ...]
    causes: tuple[str, ...] | None = None
    clients: Clients = "both"
    short: bool = False
    needs_cgroups: bool = False

    @property
    def alive(self) -> tuple[bool, ...]:
        """With a living client, without one, or first with and then without."""
        return {"both": (True, False), "there": (True,), "nobody": (False,)}[self.clients]


class Table(list[Row]):
    """Rows in the order of their registration."""

    def row(
        self,
        name: str,
        state: str = "succeeded",
        attempts: Sequence[int] = (2,),
        causes: Sequence[str] | None = None,
        *,
        clients: Clients = "both",
        short: bool = False,
        needs_cgroups: bool = False,
    ) -> Callable[[Act], Act]:
        """Register a row."""

        def register(play: Act) -> Act:
            fits = None if causes is None else tuple(causes)
            self.append(Row(name, play, state, tuple(attempts), fits, clients, short, needs_cgroups))
            return play

        return register
