"""Faults of the compute nodes."""

from __future__ import annotations

from pathlib import Path

from towline.lab import cloud, controller, namespaces, network
from towline.lab.controller import SLURMCTLD, node_states, update_node
from towline.lab.errors import LabError
from towline.lab.faults.fault import Fault, Values, host_of
from towline.lab.layout import CLOUD_NODE, CTL, STATIC_NODES, Host, Layout, find_host

_NODE = host_of("NODE", STATIC_NODES)


def require_controller(layout: Layout) -> None:
    """Raises `LabError` when Slurm cannot be asked to undo something."""
    if problem := SLURMCTLD.check(layout):
        raise LabError(f"Slurm has to be asked, and cannot: {problem}.", fix="Turn `slurmctld-down` off first.")


def _crash(layout: Layout, values: Values) -> None:
    host = find_host(values[0])
    namespaces.halt(layout, [host])


def _uncrash(layout: Layout, values: Values) -> None:
    host = find_host(values[0])
    if namespaces.holder(layout, host) is None:
        namespaces.boot(layout, [host])
    network.connect(layout, [host])
    require_controller(layout)
    # The jobs of one that is back before Slurm missed it would stay completing: nobody is left to report their ends.
    _update(layout, host.name, "down", "Node unexpectedly rebooted")
    _return(layout, host)


def _cut(layout: Layout, values: Values) -> None:
    network.set_link(layout, find_host(values[0]), up=False)


def _uncut(layout: Layout, values: Values) -> None:
    host = find_host(values[0])
    if namespaces.holder(layout, host) is not None:
        network.connect(layout, [host])
        _return(layout, host)


def _return(layout: Layout, host: Host) -> None:
    """Wait until Slurm can use the node again. One that it has not missed yet is left to itself."""
    require_controller(layout)
    controller.start_nodes(layout, [host])


def _drain(layout: Layout, values: Values) -> None:
    require_controller(layout)
    _update(layout, values[0], "drain", "fault: node-drain")


def _update(layout: Layout, node: str, state: str, reason: str) -> None:
    namespaces.run(layout, CTL, ["scontrol", "update", f"nodename={node}", f"state={state}", f"reason={reason}"])


def _undrain(layout: Layout, values: Values) -> None:
    require_controller(layout)
    if node_states(layout).get(values[0], "").startswith("drain"):
        update_node(layout, values[0], "resume")


def _fail_prolog(layout: Layout, values: Values) -> None:
    _switch(layout, f"prolog.{values[0]}").touch()


def _mend_prolog(layout: Layout, values: Values) -> None:
    _switch(layout, f"prolog.{values[0]}").unlink(missing_ok=True)
    _undrain(layout, values)


def _fail_boot(layout: Layout, _values: Values) -> None:
    _switch(layout, f"noboot.{CLOUD_NODE.name}").touch()
    if node_states(layout).get(CLOUD_NODE.name) == "idle":
        update_node(layout, CLOUD_NODE.name, "power_down")


def _mend_boot(layout: Layout, _values: Values) -> None:
    _switch(layout, f"noboot.{CLOUD_NODE.name}").unlink(missing_ok=True)
    require_controller(layout)
    if node_states(layout).get(CLOUD_NODE.name, "").endswith("#"):  # Slurm waits for it, and asks no second time
        namespaces.run(layout, CTL, [str(layout.bin / "cloud-resume.sh"), CLOUD_NODE.name], user="slurm")
    if cloud.check(layout):
        cloud.start(layout)


def _switch(layout: Layout, name: str) -> Path:
    """What the lab's scripts look for."""
    return layout.state / "faults" / name


FAULTS = (
    Fault("node-crash", "NODE loses power: everything on it ends at once, nothing is said", _crash, _uncrash, (_NODE,)),
    Fault("node-cut", "NODE is off the network; what runs on it runs on", _cut, _uncut, (_NODE,), ends_with_host=True),
    Fault("node-drain", "NODE takes no new jobs, as when somebody wants to repair it", _drain, _undrain, (_NODE,)),
    Fault("prolog-fail", "Slurm's prolog fails on NODE: job requeued and held", _fail_prolog, _mend_prolog, (_NODE,)),
    Fault("boot-fail", "the cloud node does not come when Slurm asks it to boot", _fail_boot, _mend_boot),
)
