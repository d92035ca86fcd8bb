"""Whether this machine's network has room for the lab's, read from the kernel's own table."""

from __future__ import annotations

from towline.lab.network import route_devices

HEAD = "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\n"
DEFAULT = "eth0\t00000000\t010200C0\t0003\t0\t0\t0\t00000000\t0\t0\t0\n"
LAB = "towline0\t00004D0A\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0\n"
OTHER = "docker0\t00004D0A\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0\n"
WIDER = "vpn0\t0000000A\t00000000\t0001\t0\t0\t0\t000000FF\t0\t0\t0\n"


def test_a_route_to_the_labs_subnet_is_seen_with_its_device() -> None:
    assert route_devices(HEAD + DEFAULT + LAB + OTHER) == {"towline0", "docker0"}


def test_routes_to_other_networks_are_no_matter() -> None:
    assert route_devices(HEAD + DEFAULT + WIDER) == set()
    assert route_devices(HEAD) == set()
