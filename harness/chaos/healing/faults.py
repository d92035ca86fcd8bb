"""Faults that come and go at random, several at a time."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from harness.chaos.healing.play import Play
from harness.chaos.registry import Run
from towline.lab.errors import LabError
from towline.lab.layout import GPU_NODES

ONSET, SHORTEST, LONGEST = 20.0, 2.0, 40.0
"""Seconds within which faults begin, and how long each is on. Slurm misses a node after 20."""
NODES = [node.name for node in GPU_NODES]
NAMES = (
    "node-crash",
    "node-cut",
    "slurmctld-down",
    "slurmdbd-down",
    "login-down",
    "gpu-lost",
    "urgent",
    "no-scontrol-on-nodes",
    "no-submit-from-nodes",
    "prolog-fail",
    "boot-fail",
)
_OF_NODES = ("node-crash", "node-cut", "gpu-lost", "prolog-fail")


@dataclass(frozen=True)
class Event:
    """Something that is done at a moment.

    Attributes:
        at: seconds after the beginning.
        what: in a few words, with what it is done to.
        act: does it.
    """

    at: float
    what: str
    act: Callable[[], None]


def random_faults(run: Run, play: Play) -> list[Event]:
    """A few faults, each with its beginning and its end; two of a kind at one place are one."""
    chosen = {(name, _words(name, run.random)) for name in run.random.choices(NAMES, k=run.random.randint(2, 4))}
    events: list[Event] = []
    for name, words in sorted(chosen):
        begin = run.random.uniform(0, ONSET)
        end = begin + run.random.uniform(SHORTEST, LONGEST)
        what = " ".join((name, *words))
        if name == "urgent":
            nodes = run.random.randint(1, 3)
            events.append(Event(begin, what, lambda nodes=nodes: _need_nodes(play, nodes)))
            continue
        events.append(Event(begin, what, lambda name=name, words=words: play.fault(name, *words)))
        events.append(Event(end, f"no {what}", lambda name=name, words=words: play.mend(name, *words)))
    return events


def _words(name: str, chance: random.Random) -> tuple[str, ...]:
    if name in _OF_NODES:
        return (chance.choice(NODES),)
    return ("login1",) if name == "login-down" else ()


def _need_nodes(play: Play, nodes: int) -> None:
    """A job that takes nodes from those of lower priority."""
    command = f"sbatch --parsable -J chaos-urgent -o /dev/null -p urgent -N{nodes} --exclusive --wrap 'sleep 5'"
    urgent = play.ask(command).strip()
    play.undo.callback(play.ask, f"scancel {urgent}")


def happen(run: Run, events: Sequence[Event]) -> None:
    """Let all events happen, each at its time or once those before it are through.

    What another fault stands in the way of does not come; what cannot be taken back while another one is on is
    taken back at the end.
    """
    begun = time.monotonic()
    for event in sorted(events, key=lambda each: each.at):
        time.sleep(max(0.0, begun + event.at - time.monotonic()))
        try:
            event.act()
        except LabError:
            run.seen[f"not now: {event.what.partition(' ')[0]}"] += 1
        else:
            if not event.what.startswith("no "):
                run.seen[event.what.partition(" ")[0]] += 1
