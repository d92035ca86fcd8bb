"""The node that boots on demand: its power switch, and its return to being switched off after what happened to it."""

from __future__ import annotations

from towline.lab import namespaces, process
from towline.lab.controller import node_states, update_node
from towline.lab.daemons import Daemon
from towline.lab.layout import CLOUD_NODE, Layout

_CHANGING = ("~", "#", "%", "!")
"""Slurm's marks after a state: powered down, powering up, powering down, about to."""

POWER_SWITCH = Daemon(
    "cloud-power.sh",
    CLOUD_NODE,
    lambda layout: [str(layout.bin / "cloud-power.sh"), str(layout.run / "power" / CLOUD_NODE.name)],
    f"power-{CLOUD_NODE.name}.log",
    lambda layout: bool(namespaces.find(layout, CLOUD_NODE, "cloud-power.sh")),
    detaches=False,
)


def check(layout: Layout) -> str:
    """What is wrong; empty when the node is off, on its way, or on with its slurmd."""
    if problem := POWER_SWITCH.check(layout):
        return problem
    state = _state(layout)
    if _is_down(state):
        return f"{CLOUD_NODE.name} is {state}"
    return f"{CLOUD_NODE.name} is {state} without its slurmd" if _lost(layout, state) else ""


def start(layout: Layout) -> None:
    """Start the switch, and switch off a node that Slurm takes to be on and that is not.

    Raises:
        LabError: the switch does not run, or Slurm does not give the node back.
    """
    if POWER_SWITCH.check(layout):
        POWER_SWITCH.start(layout)
    process.until(lambda: _mended(layout), 30, f"The return of {CLOUD_NODE.name}")


def _mended(layout: Layout) -> bool:
    state = _state(layout)
    if _is_down(state):
        update_node(layout, CLOUD_NODE.name, "resume")
    elif _lost(layout, state):
        update_node(layout, CLOUD_NODE.name, "power_down_force")
    return not check(layout)


def _state(layout: Layout) -> str:
    return node_states(layout).get(CLOUD_NODE.name, "unknown")


def _is_down(state: str) -> bool:
    return state.startswith(("down", "drain", "unknown"))


def _lost(layout: Layout, state: str) -> bool:
    return not state.endswith(_CHANGING) and not namespaces.find(layout, CLOUD_NODE, "slurmd")
