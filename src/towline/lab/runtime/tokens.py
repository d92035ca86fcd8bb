"""A token service for the locked registry, as nvcr.io has one: it sends clients on to another host."""

from __future__ import annotations

from pathlib import Path

from towline.lab import process
from towline.lab.daemons import Daemon, answers
from towline.lab.files import replace, write_in_place
from towline.lab.layout import CTL, REGISTRY_USER, TOKEN_PORT, Layout

_NAME = "token-server"
_SCRIPT = Path(__file__).with_name(_NAME)


def is_on(layout: Layout) -> bool:
    """Whether the locked registry is to work with tokens."""
    return (_folder(layout) / "key.pem").exists()


def auth(layout: Layout) -> dict[str, object]:
    """What the registry's configuration says of it."""
    return {
        "token": {
            "realm": f"http://{CTL.aliases[0]}:{TOKEN_PORT}/proxy_auth",
            "service": "lab",
            "issuer": "lab",
            "rootcertbundle": str(_folder(layout) / "cert.pem"),
        }
    }


def start(layout: Layout) -> None:
    """Have the service up, with a key of its own."""
    folder = _folder(layout)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not is_on(layout):
        made = ["-keyout", str(folder / "key.pem"), "-out", str(folder / "cert.pem")]
        process.run(
            ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "30", "-subj", "/CN=lab", *made]
        )
    password = layout.registry_password.read_text().strip()
    write_in_place(folder / "user", f"{REGISTRY_USER}:{password}\n", 0o600)
    replace(layout.runtime / "sbin" / _NAME, _SCRIPT.read_text(), 0o755)
    _daemon().start(layout)


def stop(layout: Layout) -> None:
    """End it; the registry asks for passwords again after its next start."""
    _daemon().stop(layout)
    for path in _folder(layout).glob("*"):
        path.unlink()


def _folder(layout: Layout) -> Path:
    return layout.state / "registry" / "tokens"


def _daemon() -> Daemon:
    return Daemon(
        _NAME,
        CTL,
        lambda layout: [
            str(layout.runtime / "sbin" / _NAME), CTL.address, str(TOKEN_PORT), str(_folder(layout))
        ],
        f"{_NAME}.log",
        lambda _: answers(CTL.address, TOKEN_PORT),
        detaches=False,
    )  # fmt: skip
