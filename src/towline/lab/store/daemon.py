"""The two servers that data comes from: how they start, and what opens them."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

from towline.lab import process
from towline.lab.daemons import Daemon, answers
from towline.lab.layout import CTL, STORE_PORT, WEB_PORT, WEB_TLS_PORT, Layout
from towline.lab.store import server, web

NO_MOTO = "no object store: the Python that brought the lab up has no moto (pip install 'moto[s3]' flask flask-cors)"


def keys_file(layout: Layout) -> Path:
    """The file with access key and secret key, apart by a blank."""
    return layout.keys / "store"


def certificate(layout: Layout) -> Path:
    """The web server's certificate, which clients must be told to trust."""
    return layout.lustre / "web.pem"


def web_folder(layout: Layout) -> Path:
    """The files that the web server gives to anybody."""
    return layout.state / "web"


def has_moto() -> bool:
    """Whether there can be an object store here."""
    return all(importlib.util.find_spec(name) for name in ("moto", "flask", "flask_cors"))


def check_begun(layout: Layout) -> str:
    """Which processes are not there; empty when none lacks."""
    return ", ".join(f"{daemon.program} is not running" for daemon in _daemons() if not daemon.pids(layout))


def begin(layout: Layout) -> None:
    """Start the processes that are not there; one takes seconds to answer, in which other parts come up."""
    _make_certificate(layout)
    web_folder(layout).mkdir(parents=True, exist_ok=True)
    for daemon in _daemons():
        if not daemon.pids(layout):
            _launch(layout, daemon)
    # A Python has its name once it runs.
    process.until(lambda: not check_begun(layout), 10, "the stores' processes")


def check(layout: Layout) -> str:
    """What is wrong; empty when what can be there answers."""
    return ", ".join(problem for daemon in _daemons() if (problem := daemon.check(layout)))


def start(layout: Layout) -> None:
    """Wait until all answer; one that does not in time is started again.

    Raises:
        LabError: one did not come up.
    """
    begin(layout)
    for daemon in _daemons():
        daemon.await_ready(layout)


def _launch(layout: Layout, daemon: Daemon) -> None:
    if daemon is _STORE:
        keys_file(layout).unlink(missing_ok=True)
    daemon.launch(layout)


def stop(layout: Layout) -> None:
    """End both."""
    for daemon in _daemons():
        daemon.stop(layout)


def _daemons() -> tuple[Daemon, ...]:
    return (_STORE, _WEB) if has_moto() else (_WEB,)


def _make_certificate(layout: Layout) -> None:
    key, shown = layout.keys / "web.pem", certificate(layout)
    if key.exists() and shown.exists():
        return
    names = ",".join(f"DNS:{name}" for name in CTL.aliases)
    made = ["-keyout", str(key), "-out", str(shown), "-addext", f"subjectAltName={names},IP:{CTL.address}"]
    process.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "3650", "-subj", "/CN=lab", *made]
    )
    key.write_text(key.read_text() + shown.read_text())
    key.chmod(0o600)
    shown.chmod(0o644)


_STORE = Daemon(
    server.NAME,
    CTL,
    lambda layout: [sys.executable, server.__file__, CTL.address, str(STORE_PORT), str(keys_file(layout))],
    "store.log",
    lambda layout: keys_file(layout).exists() and answers(CTL.address, STORE_PORT),
    detaches=False,
    own_files=False,
)
_WEB = Daemon(
    web.NAME,
    CTL,
    lambda layout: [
        sys.executable,
        web.__file__,
        CTL.address,
        str(WEB_PORT),
        str(WEB_TLS_PORT),
        str(web_folder(layout)),
        str(layout.keys / "web.pem"),
    ],
    "web.log",
    lambda _: answers(CTL.address, WEB_PORT) and answers(CTL.address, WEB_TLS_PORT),
    detaches=False,
    own_files=False,
)
