"""Faults that all submissions of a while live under: the controller dead, stopped or slow, the disk full."""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager

from towline.lab import Lab
from towline.lab.controller import SLURMCTLD

LATEST = 1.2
"""Seconds after the start within which a fault comes."""


@contextmanager
def weather(lab: Lab, chance: random.Random) -> Generator[str]:
    """Have a fault come and go at random moments, or none; gives its name. It is over at the end."""
    faults: dict[str, tuple[Callable[[], object], Callable[[], object], float]] = {
        "slurmctld-down": (lambda: lab.fault_on("slurmctld-down"), lambda: lab.fault_off("slurmctld-down"), 4),
        "slurmctld-stopped": (lambda: _signal(lab, signal.SIGSTOP), lambda: _signal(lab, signal.SIGCONT), 13),
        "slurmctld-slow": (
            lambda: lab.fault_on("slurmctld-slow", str(chance.choice((500, 3000, 11000)))),
            lambda: lab.fault_off("slurmctld-slow"),
            6,
        ),
        "disk-full": (lambda: lab.fault_on("disk-full"), lambda: lab.fault_off("disk-full"), 2),
        "quota": (lambda: lab.fault_on("quota"), lambda: lab.fault_off("quota"), 2),
    }
    name = chance.choices(("fair", *faults), weights=(5, 1, 1, 1, 1, 1))[0]
    if name == "fair":
        yield name
        return
    on, off, longest = faults[name]
    begin, lasts = chance.uniform(0, LATEST), chance.uniform(0.3, longest)
    over = threading.Event()
    storm = threading.Thread(target=_come_and_go, args=(on, off, begin, lasts, over))
    storm.start()
    try:
        yield name
    finally:
        over.wait()
        storm.join()


def _come_and_go(
    on: Callable[[], object], off: Callable[[], object], begin: float, lasts: float, over: threading.Event
) -> None:
    time.sleep(begin)
    try:
        on()
        time.sleep(lasts)
    finally:
        off()
        over.set()


def _signal(lab: Lab, what: signal.Signals) -> None:
    for pid in SLURMCTLD.pids(lab.paths):
        os.kill(pid, what)
