"""Packets that are dropped, and connections that take a way round: nftables in a lab host, and a relay."""

from __future__ import annotations

from dataclasses import dataclass

from towline.lab import namespaces, process
from towline.lab.daemons import Daemon, answers
from towline.lab.faults import native
from towline.lab.layout import UPLINK_ADDRESS, Host, Layout

_DROP_OUTSIDE = f"""\
table inet lab_cut {{
    chain arriving {{
        type filter hook prerouting priority raw
        ip saddr {UPLINK_ADDRESS} drop
    }}
    chain leaving {{
        type filter hook postrouting priority 300
        ip daddr {UPLINK_ADDRESS} drop
    }}
}}
"""


def cut_outside(layout: Layout, host: Host) -> None:
    """Drop every packet between a host and this machine; the lab's hosts still reach each other."""
    _nft(layout, host, f"table inet lab_cut\ndelete table inet lab_cut\n{_DROP_OUTSIDE}")


def mend_outside(layout: Layout, host: Host) -> None:
    """Let the packets through again."""
    _drop_table(layout, host, "lab_cut")


@dataclass(frozen=True)
class Relay:
    """A slower way to one port of a host. Connections that are there already keep the direct one.

    Attributes:
        name: of its process and its table; at most 15 characters.
        port: where clients go.
        milliseconds: added to a round trip.
        rate: bytes per second each way; 0 for as many as there are.
    """

    name: str
    host: Host
    port: int
    milliseconds: int = 0
    rate: int = 0

    def start(self, layout: Layout) -> None:
        """Send what comes from other machines the slow way, in place of an earlier relay of that name."""
        self._daemon().stop(layout)
        self._daemon().start(layout)
        _nft(layout, self.host, f"table inet {self._table}\ndelete table inet {self._table}\n{self._redirect()}")

    def stop(self, layout: Layout) -> None:
        """Send new connections the direct way; those on the slow way break."""
        _drop_table(layout, self.host, self._table)
        self._daemon().stop(layout)

    @property
    def _own_port(self) -> int:
        return self.port + 20_000

    @property
    def _table(self) -> str:
        return self.name.replace("-", "_")

    def _redirect(self) -> str:
        rule = f'iifname "eth0" tcp dport {self.port} redirect to :{self._own_port}'
        chain = f"chain arriving {{\n type nat hook prerouting priority dstnat\n {rule}\n}}"
        return f"table inet {self._table} {{\n{chain}\n}}\n"

    def _daemon(self) -> Daemon:
        numbers = [str(self._own_port), self.host.address, str(self.port), str(self.milliseconds), str(self.rate)]
        return Daemon(
            self.name,
            self.host,
            lambda layout: [str(native.program(layout, "relay")), self.name, *numbers],
            f"{self.name}.log",
            lambda _: answers(self.host.address, self._own_port),
            detaches=False,
        )


def _drop_table(layout: Layout, host: Host, name: str) -> None:
    if namespaces.holder(layout, host) is not None:  # one without power has no tables either
        _nft(layout, host, f"table inet {name}\ndelete table inet {name}\n")


def _nft(layout: Layout, host: Host, text: str) -> None:
    pid = namespaces.require(layout, host)
    process.run(["nsenter", "-t", str(pid), "--net", "nft", "-f", "-"], stdin=text)
