"""Faults of the image registries."""

from __future__ import annotations

from towline.lab.faults.fault import Fault, Values, number
from towline.lab.faults.packets import Relay
from towline.lab.layout import CTL, Layout
from towline.lab.runtime import registry, tokens
from towline.lab.runtime.registry import LOCKED, REGISTRIES

_ROUND_TRIP = 500
"""Milliseconds that each answer of a slow registry takes longer."""


def _down(layout: Layout, _values: Values) -> None:
    registry.stop(layout)


def _up(layout: Layout, _values: Values) -> None:
    registry.start(layout)


def _slow(layout: Layout, values: Values) -> None:
    for one in REGISTRIES:
        Relay(f"slow-{one.name}", CTL, one.port, _ROUND_TRIP, int(values[0]) * 1024).start(layout)


def _unslow(layout: Layout, _values: Values) -> None:
    for one in REGISTRIES:
        Relay(f"slow-{one.name}", CTL, one.port).stop(layout)


def _tokens(layout: Layout, _values: Values) -> None:
    tokens.start(layout)
    registry.restart(layout, LOCKED)


def _passwords(layout: Layout, _values: Values) -> None:
    tokens.stop(layout)
    registry.restart(layout, LOCKED)


FAULTS = (
    Fault("registry-tokens", "the locked registry works with tokens, as nvcr.io does", _tokens, _passwords),
    Fault("registry-down", "neither registry answers", _down, _up),
    Fault(
        "registry-slow",
        "both registries give KIB KiB a second, after half a second's silence",
        _slow,
        _unslow,
        (number("KIB", 1, 1_000_000, default=256),),
    ),
)
