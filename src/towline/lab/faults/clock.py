"""A host whose clock is wrong.

The kernel has one clock for all hosts, and time namespaces have none of their own for the time of day.
"""

from __future__ import annotations

from towline.lab.faults import shims
from towline.lab.faults.fault import Fault, Values, host_of, number
from towline.lab.layout import LOGINS, NODES, Layout, find_host

_YEAR = 366 * 24 * 3600


def _skew(layout: Layout, values: Values) -> None:
    shims.put(layout, find_host(values[0]), "skew", int(values[1]))


def _unskew(layout: Layout, values: Values) -> None:
    shims.take(layout, find_host(values[0]), "skew")


FAULTS = (
    Fault(
        "clock-skew",
        "programs of users on HOST see a clock that is SECONDS ahead (behind, when negative)",
        _skew,
        _unskew,
        (host_of("HOST", (*LOGINS, *NODES)), number("SECONDS", -_YEAR, _YEAR, default=600)),
        ends_with_host=True,
    ),
)
