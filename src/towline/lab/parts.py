"""The parts of the lab in the order in which they come up; they go down in the reverse order."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from towline.lab import (
    accounting,
    cloud,
    controller,
    database,
    disk,
    folder,
    kernel,
    logins,
    namespaces,
    network,
    profile,
    runtime,
)
from towline.lab.accounting import SLURMDBD
from towline.lab.controller import SLURMCTLD
from towline.lab.layout import CTL, HOSTS, Layout
from towline.lab.munge import MUNGED
from towline.lab.runtime import registry
from towline.lab.store import daemon as store

Act = Callable[[Layout], None]
Report = Callable[[str], None]
"""Told one line at a time what goes on."""


def unheard(_line: str) -> None:
    """For who does not want to hear it."""


def _nothing(_layout: Layout) -> None:
    pass


@dataclass(frozen=True)
class Part:
    """Something of the lab that comes up as a whole."""

    name: str
    check: Callable[[Layout], str]
    """What is wrong with it, in a few words; empty when it is up."""
    start: Act
    """Brings it up from whatever is there; raises `LabError` when it cannot."""
    stop: Act = _nothing
    """Takes it away; what is not there is no error."""
    logs: tuple[str, ...] = ()
    """Patterns of its log files' names."""


def _check_hosts(layout: Layout) -> str:
    down = [host.name for host in HOSTS if namespaces.holder(layout, host) is None]
    return f"down: {', '.join(down)}" if down else ""


def _start_hosts(layout: Layout) -> None:
    namespaces.halt_strays(layout)
    namespaces.boot(layout, [host for host in HOSTS if namespaces.holder(layout, host) is None])


def _stop_hosts(layout: Layout) -> None:
    kernel.thaw()
    namespaces.halt(layout, HOSTS)
    namespaces.halt_strays(layout)


def _stop_controller(layout: Layout) -> None:
    if namespaces.holder(layout, CTL) is not None:
        controller.cancel_all(layout)
        SLURMCTLD.stop(layout)


def all_parts(report: Report = unheard) -> tuple[Part, ...]:
    """The parts in the order in which they come up; `report` hears of what takes long within one."""
    return (
        Part("folder", folder.check, folder.start, folder.stop),
        Part("disk", disk.check, disk.start, disk.stop),
        Part("gpus", kernel.check_gpus, kernel.start_gpus, kernel.stop_gpus),
        Part("control groups", lambda _: "", _nothing, kernel.stop_cgroups),
        Part("runtime", runtime.check, runtime.build),
        Part("hosts", _check_hosts, _start_hosts, _stop_hosts, ("host-*.log",)),
        Part("network", network.check, network.start, network.stop),
        Part("store processes", store.check_begun, store.begin),
        Part("munge", MUNGED.check, MUNGED.start, logs=("munged.log",)),
        Part("database", database.MARIADB.check, database.start, database.MARIADB.stop, ("mariadb.log",)),
        Part("accounting", SLURMDBD.check, accounting.start, SLURMDBD.stop, ("slurmdbd.log",)),
        Part("controller", SLURMCTLD.check, SLURMCTLD.start, _stop_controller, ("slurmctld.log",)),
        Part("records", accounting.check_records, accounting.make_records),
        Part("nodes", controller.check_nodes, controller.start_nodes, logs=("slurmd-*.log",)),
        Part("cloud", cloud.check, cloud.start, logs=("power-*.log",)),
        Part("logins", logins.check, logins.start, logins.stop, ("sshd-*.log",)),
        Part("registries", registry.check, registry.start, registry.stop, ("registry-*.log",)),
        Part("stores", store.check, store.start, store.stop, ("store.log", "web.log")),
        Part("images", runtime.check_images, lambda layout: runtime.images(layout, report)),
        Part("profile", profile.check, profile.start, profile.stop),
    )
