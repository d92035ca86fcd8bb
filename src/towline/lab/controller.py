"""slurmctld and the compute nodes' slurmd."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence

from towline.lab import namespaces, process
from towline.lab.daemons import Daemon, answers
from towline.lab.errors import LabError
from towline.lab.layout import CTL, STATIC_NODES, Host, Layout

_USABLE = {"idle", "mixed", "allocated", "completing", "reserved", "planned"}


def _pings(layout: Layout) -> bool:
    return namespaces.run(layout, CTL, ["scontrol", "ping"], check=False).returncode == 0


SLURMCTLD = Daemon("slurmctld", CTL, lambda _: ["slurmctld"], "slurmctld.log", _pings, user="slurm")


def slurmd(host: Host) -> Daemon:
    """The daemon of one compute node."""
    return Daemon(
        "slurmd", host, lambda _: ["slurmd"], f"slurmd-{host.name}.log", lambda _: answers(host.address, 6818)
    )


def node_states(layout: Layout) -> dict[str, str]:
    """What Slurm says of each node, e.g. `idle`, `drained`, `down*`; empty when the controller does not answer."""
    if not SLURMCTLD.pids(layout):
        return {}  # sinfo would take 9 s to find out
    done = namespaces.run(layout, CTL, ["sinfo", "-h", "-N", "-o", "%N %T"], check=False)
    return dict(line.split(maxsplit=1) for line in done.stdout.splitlines())


def update_node(layout: Layout, names: str, state: str) -> None:
    """Ask Slurm to put nodes into a state; it may refuse, which `node_states` shows."""
    namespaces.run(layout, CTL, ["scontrol", "update", f"nodename={names}", f"state={state}"], check=False)


def check_nodes(layout: Layout) -> str:
    """What is wrong with the compute nodes; empty when each one can take a job."""
    for host in STATIC_NODES:
        if not slurmd(host).pids(layout):
            return f"slurmd on {host.name} is not running"
    states = node_states(layout)
    bad = [f"{host.name} is {states.get(host.name, 'unknown')}" for host in STATIC_NODES if not _usable(states, host)]
    return ", ".join(bad)


def start_nodes(layout: Layout, hosts: Sequence[Host] = STATIC_NODES) -> None:
    """Start what slurmd is missing and wait until Slurm can use every one of the nodes.

    Raises:
        LabError: a node stays unusable; its state and the end of its log are in the message.
    """
    daemons = [slurmd(host) for host in hosts]
    missing = [daemon for daemon in daemons if daemon.check(layout)]
    for daemon in missing:
        daemon.launch(layout)
    for daemon in missing:
        daemon.await_ready(layout)
    try:
        process.until(lambda: _resumed(layout, hosts), 40, "The return of every node")
    except LabError as error:
        raise _unusable(layout, hosts) from error


def _usable(states: dict[str, str], host: Host) -> bool:
    return states.get(host.name, "") in _USABLE


def _resumed(layout: Layout, hosts: Sequence[Host]) -> bool:
    states = node_states(layout)
    lost = [host.name for host in hosts if states.get(host.name, "").rstrip("*").startswith(("down", "drain"))]
    if lost:
        # Refused for a node that is coming back by itself; asked again on the next round.
        update_node(layout, ",".join(lost), "resume")
    return all(_usable(states, host) for host in hosts)


def _unusable(layout: Layout, hosts: Sequence[Host]) -> LabError:
    states = node_states(layout)
    host = next((host for host in hosts if not _usable(states, host)), hosts[0])
    return LabError(
        f"Slurm cannot use {host.name}: {states.get(host.name, 'unknown')}.",
        why=process.tail(layout.log / f"slurmd-{host.name}.log"),
    )


def stop_daemons(layout: Layout) -> None:
    """End slurmctld and every slurmd; jobs go on and are found again."""
    for daemon in (SLURMCTLD, *(slurmd(host) for host in STATIC_NODES)):
        daemon.stop(layout)


def cancel_all(layout: Layout) -> None:
    """Cancel every job and wait for their ends, so that the next `up` does not find jobs without their nodes."""
    if SLURMCTLD.check(layout):
        return
    namespaces.run(layout, CTL, ["scancel", "--state=PENDING"], check=False)
    namespaces.run(layout, CTL, ["scancel", "--signal=KILL", "--full", "--state=RUNNING"], check=False)
    namespaces.run(layout, CTL, ["scancel", "--state=RUNNING"], check=False)
    namespaces.run(layout, CTL, ["scancel", "--state=SUSPENDED"], check=False)
    with contextlib.suppress(LabError):
        process.until(lambda: not _jobs(layout), 8, "The end of every job")


def _jobs(layout: Layout) -> str:
    return namespaces.run(layout, CTL, ["squeue", "-h", "-o", "%i"], check=False).stdout.strip()
