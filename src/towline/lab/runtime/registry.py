"""The lab's two registries on the controller's address: one open, one that asks for a password."""

from __future__ import annotations

import base64
import http.client
import json
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path

from towline.lab import process
from towline.lab.daemons import Daemon
from towline.lab.files import write_in_place
from towline.lab.layout import CTL, LOCKED_REGISTRY_PORT, OPEN_REGISTRY_PORT, REGISTRY_USER, Layout
from towline.lab.runtime import tokens

_PROGRAM = "/usr/bin/docker-registry"
_OK, _UNAUTHORIZED = 200, 401


@dataclass(frozen=True)
class Registry:
    """One of them."""

    name: str
    port: int
    locked: bool

    @property
    def address(self) -> str:
        """HOST:PORT, good on this machine and on every lab host."""
        return f"{CTL.address}:{self.port}"

    def storage(self, layout: Layout) -> Path:
        """Where its content is."""
        return layout.state / "registry" / self.name

    def holds(self, layout: Layout, repository: str, tag: str) -> bool:
        """Whether there is such a tag in it, by its files."""
        tags = f"docker/registry/v2/repositories/{repository}/_manifests/tags"
        return (self.storage(layout) / tags / tag / "current" / "link").exists()

    def daemon(self) -> Daemon:
        """Its process, which has a name of its own, so that the two can be told apart."""
        program = f"registry-{self.name}"
        return Daemon(
            program,
            CTL,
            lambda layout: [str(layout.runtime / "sbin" / program), "serve", str(_config_file(layout, self))],
            f"{program}.log",
            lambda _: self.answers(),
            detaches=False,
        )

    def answers(self) -> bool:
        """Whether it answers as it should: the locked one by asking who is there."""
        connection = http.client.HTTPConnection(CTL.address, self.port, timeout=2)
        try:
            connection.request("GET", "/v2/")
            return connection.getresponse().status == (_UNAUTHORIZED if self.locked else _OK)
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()


OPEN = Registry("open", OPEN_REGISTRY_PORT, locked=False)
LOCKED = Registry("locked", LOCKED_REGISTRY_PORT, locked=True)
REGISTRIES = (OPEN, LOCKED)


def check(layout: Layout) -> str:
    """What is wrong; empty when both answer."""
    return ", ".join(problem for one in REGISTRIES if (problem := one.daemon().check(layout)))


def start(layout: Layout) -> None:
    """Start what does not answer.

    Raises:
        LabError: one did not come up.
    """
    waiting = [one for one in REGISTRIES if one.daemon().check(layout)]
    for one in waiting:
        _configure(layout, one)
        one.daemon().launch(layout)
    for one in waiting:
        one.daemon().await_ready(layout)


def stop(layout: Layout) -> None:
    """End both; their content stays."""
    for one in REGISTRIES:
        one.daemon().stop(layout)


def restart(layout: Layout, one: Registry) -> None:
    """Have one that runs read its configuration again. Raises as `start` does."""
    if one.daemon().pids(layout):
        one.daemon().stop(layout)
        start(layout)


def push(layout: Layout, one: Registry, archive: Path, repository: str, tag: str) -> None:
    """Put an image of the form of `docker save` into a registry.

    As a Docker manifest: Enroot asks without saying what it accepts, and an OCI manifest would be answered with 404.
    """
    with tempfile.NamedTemporaryFile("w", suffix=".json") as auth:
        json.dump(_auth(layout, one), auth)
        auth.flush()
        flags = ["--insecure-policy", "copy", "-q", "--format", "v2s2", "--dest-tls-verify=false"]
        source, target = f"docker-archive:{archive}", f"docker://{one.address}/{repository}:{tag}"
        process.run(["skopeo", *flags, "--dest-authfile", auth.name, source, target], timeout=120)


def _auth(layout: Layout, one: Registry) -> dict[str, dict[str, dict[str, str]]]:
    if not one.locked:
        return {"auths": {}}
    pair = f"{REGISTRY_USER}:{_password(layout)}".encode()
    return {"auths": {one.address: {"auth": base64.b64encode(pair).decode()}}}


def _password(layout: Layout) -> str:
    return layout.registry_password.read_text().strip()


def _config_file(layout: Layout, one: Registry) -> Path:
    return layout.state / "registry" / f"{one.name}.json"


def _configure(layout: Layout, one: Registry) -> None:
    one.storage(layout).mkdir(parents=True, exist_ok=True)
    program = layout.runtime / "sbin" / f"registry-{one.name}"
    program.parent.mkdir(parents=True, exist_ok=True)
    program.unlink(missing_ok=True)
    program.symlink_to(_PROGRAM)
    write_in_place(_config_file(layout, one), json.dumps(_config(layout, one), indent=2) + "\n", 0o600)


def _config(layout: Layout, one: Registry) -> dict[str, object]:
    """JSON is YAML, too."""
    config: dict[str, object] = {
        "version": 0.1,
        "log": {"level": "warn", "accesslog": {"disabled": True}},
        "storage": {"filesystem": {"rootdirectory": str(one.storage(layout))}, "delete": {"enabled": True}},
        "http": {"addr": one.address, "secret": os.urandom(16).hex()},
    }
    if one.locked:
        passwords = {"htpasswd": {"realm": "lab", "path": str(_write_htpasswd(layout))}}
        config["auth"] = tokens.auth(layout) if tokens.is_on(layout) else passwords
    return config


def _write_htpasswd(layout: Layout) -> Path:
    path = layout.state / "registry" / "htpasswd"
    line = process.run(["htpasswd", "-niB", REGISTRY_USER], stdin=_password(layout)).stdout
    write_in_place(path, line, 0o600)
    return path
