"""Turning faults on and off, with a record of which are on."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence

from towline.lab.errors import LabError
from towline.lab.faults import record
from towline.lab.faults.fault import Act, Fault
from towline.lab.faults.record import Active
from towline.lab.faults.registry import FAULTS, find
from towline.lab.layout import Layout


def turn_on(layout: Layout, name: str, words: Sequence[str]) -> Active:
    """Turn a fault on; one that is on for the same place is turned off first.

    Raises:
        LabError: no such fault, wrong arguments, or it could not be turned on; then it is off.
    """
    fault = find(name)
    wanted = Active(name, fault.parsed(words))
    for earlier in _of(layout, fault):
        if earlier != wanted and fault.is_same(earlier.values, wanted.values):
            _off(layout, fault, earlier)
    record.add(layout, fault, wanted.values)
    try:
        _act(fault.on, layout, wanted, "on")
    except LabError:
        with contextlib.suppress(LabError, OSError):
            fault.off(layout, wanted.values)
        record.remove(layout, fault, wanted.values)
        raise
    return wanted


def turn_off(layout: Layout, name: str, words: Sequence[str] = ()) -> list[Active]:
    """Turn a fault off, everywhere or for one host; what was on.

    Raises:
        LabError: no such fault, or it could not be turned off; then it stays on record.
    """
    fault = find(name)
    place = fault.arguments[0].parse(words[0]) if words and fault.is_per_host else ""
    ended = [one for one in _of(layout, fault) if not place or one.values[0] == place]
    for one in ended:
        _off(layout, fault, one)
    return ended


def turn_all_off(layout: Layout) -> list[str]:
    """Turn all faults off, those first without which others cannot be undone; what went wrong, a line each."""
    failures: list[str] = []
    for fault in FAULTS.values():
        for one in _of(layout, fault):
            try:
                _off(layout, fault, one)
            except LabError as error:
                failures.append(f"{one}: {error}")
    return failures


def _act(act: Act, layout: Layout, one: Active, where_to: str) -> None:
    try:
        act(layout, one.values)
    except OSError as error:
        fix = "`towline lab reset` mends what is down."
        raise LabError(f"{one} could not be turned {where_to}.", why=str(error), fix=fix) from error


def _of(layout: Layout, fault: Fault) -> list[Active]:
    return [one for one in record.active(layout) if one.name == fault.name]


def _off(layout: Layout, fault: Fault, one: Active) -> None:
    _act(fault.off, layout, one, "off")
    record.remove(layout, fault, one.values)
    if fault.name == "node-crash":
        _again(layout, one.values[0])


def _again(layout: Layout, host: str) -> None:
    """Turn on once more what a host lost with its power."""
    for one in record.active(layout):
        fault = find(one.name)
        if fault.ends_with_host and (not fault.is_per_host or one.values[0] == host):
            fault.on(layout, one.values)
