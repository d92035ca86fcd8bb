"""The lab's network: a bridge in the host `switch`, one cable from it to each host and one to this machine.

The bridge is in a namespace of its own, so this machine's packet filter has no say in what hosts tell each other.
"""

from __future__ import annotations

import ipaddress
import os
import struct
from collections.abc import Sequence
from pathlib import Path

from towline.lab import namespaces, process
from towline.lab.errors import LabError
from towline.lab.layout import CLUSTER_HOSTS, SUBNET, SWITCH, UPLINK, UPLINK_ADDRESS, Host, Layout

_BRIDGE = "bridge0"


def refusal() -> str:
    """Why this machine's network has no room for the lab's; empty when it has."""
    # Read here and not asked of `ip`, which a machine that gets its packages by the same command does not have yet.
    others = route_devices(Path("/proc/net/route").read_text()) - {UPLINK}
    return f"this machine already has a route to {SUBNET} over {', '.join(sorted(others))}" if others else ""


def route_devices(table: str) -> set[str]:
    """The devices over which a kernel's IPv4 routing table (proc(5)) reaches the lab's subnet itself."""
    wanted = ipaddress.ip_network(SUBNET)
    return {
        device
        for device, destination, *_, mask in (line.split()[:8] for line in table.splitlines()[1:])
        if (_address_of(destination), _address_of(mask)) == (wanted.network_address, wanted.netmask)
    }


def _address_of(column: str) -> ipaddress.IPv4Address:
    """An address as the kernel prints it: hexadecimal, in this machine's byte order."""
    return ipaddress.IPv4Address(struct.pack("=I", int(column, 16)))


def check(layout: Layout) -> str:
    """What is wrong with the network; empty when every host hangs on the bridge."""
    switch = namespaces.holder(layout, SWITCH)
    if switch is None:
        return "the switch is down"
    ports = _devices(switch)
    for host in CLUSTER_HOSTS:
        held = namespaces.holder(layout, host)
        if held is None or _port(host) not in ports or "eth0" not in _devices(held):
            return f"{host.name} is not connected"
        if not _is_up(held, "eth0"):
            return f"the link of {host.name} is down"
    return "" if UPLINK in _devices(os.getpid()) else "this machine is not connected"


def start(layout: Layout) -> None:
    """Lay what cables are missing and bring all of them up; hosts that are connected stay so."""
    connect(layout, CLUSTER_HOSTS)
    _address_uplink()


def connect(layout: Layout, hosts: Sequence[Host]) -> None:
    """Lay the cables of these hosts that are missing and bring all of theirs up."""
    _lay_cables(layout, namespaces.require(layout, SWITCH), hosts)
    for host in hosts:
        _address(namespaces.require(layout, host), host)


def stop(_layout: Layout) -> None:
    """Take this machine's end away, if the switch has not taken it along already."""
    if UPLINK in _devices(os.getpid()):
        process.run(["ip", "link", "delete", UPLINK], check=False)


def set_link(layout: Layout, host: Host, *, up: bool) -> None:
    """Plug a host's cable in or out, as a fault of the network."""
    held = namespaces.require(layout, host)
    _ip_batch(held, [f"link set eth0 {'up' if up else 'down'}"])


def _lay_cables(layout: Layout, switch: int, hosts: Sequence[Host]) -> None:
    there = _devices(switch)
    commands: list[str] = []
    if _BRIDGE not in there:
        commands += [f"link add {_BRIDGE} type bridge forward_delay 0", f"link set {_BRIDGE} up"]
    ends = [(_port(host), "eth0", host.address, namespaces.require(layout, host)) for host in hosts]
    for port, far_end, address, pid in [*ends, ("p-uplink", UPLINK, UPLINK_ADDRESS, os.getpid())]:
        if port in there and far_end in _devices(pid):
            continue
        if port in there:  # its far end went with a host that died
            commands.append(f"link delete {port}")
        else:
            _await_gone(pid, far_end)
        commands.append(f"link add {port} type veth peer name {far_end} address {_mac(address)} netns {pid}")
        commands += [f"link set {port} master {_BRIDGE}", f"link set {port} up"]
    _ip_batch(switch, commands)


def _await_gone(pid: int, device: str) -> None:
    """Wait for the end of a cable whose other end died with its host: the kernel clears up in its own time."""
    process.until(lambda: device not in _devices(pid), 20, f"the end of {device}, whose other end is gone")


def _address(pid: int, host: Host) -> None:
    _ip_batch(pid, ["link set lo up", f"addr replace {host.address}/24 dev eth0", "link set eth0 up"])


def _address_uplink() -> None:
    batch = f"addr replace {UPLINK_ADDRESS}/24 dev {UPLINK}\nlink set {UPLINK} up\n"
    process.run(["ip", "-batch", "-"], stdin=batch)


def _ip_batch(pid: int, commands: list[str]) -> None:
    if not commands:
        return
    try:
        process.run(["nsenter", "-t", str(pid), "--net", "ip", "-batch", "-"], stdin="\n".join(commands) + "\n")
    except LabError as error:
        raise LabError("The lab's network could not be laid.", why=error.why) from error


def _mac(address: str) -> str:
    """Always the same for an address: neighbours of a host that was started again would go on calling the old one."""
    return ":".join(["02", "00", *(f"{int(part):02x}" for part in address.split("."))])


def _port(host: Host) -> str:
    return f"p-{host.name}"


def _devices(pid: int) -> set[str]:
    try:
        lines = Path(f"/proc/{pid}/net/dev").read_text().splitlines()
    except OSError:
        return set()
    return {line.partition(":")[0].strip() for line in lines if ":" in line}


def _is_up(pid: int, device: str) -> bool:
    # A device that is down has no route; the lab's hosts have no other than that of their subnet.
    return device in Path(f"/proc/{pid}/net/route").read_text()
