"""Which container runtime the lab uses: its stand-ins, or a Pyxis and an Enroot given by path."""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import dataclass
from pathlib import Path

from towline.lab import process
from towline.lab.errors import LabError
from towline.lab.files import replace
from towline.lab.layout import Layout, hidden_inside

STAND_IN_PYXIS, STAND_IN_ENROOT = "0.24.0", "4.1.2"
"""The versions whose behaviour the stand-ins have."""
_PYXIS_VERSION, _ENROOT_VERSION = rb"pyxis: version v([0-9.]+)", rb'ENROOT_VERSION="([0-9.]+)"'
_ENROOT_NEEDS = {"bash": "bash", "parallel": "parallel", "zstd": "zstd", "column": "bsdextrautils", "pigz": "pigz"}
"""Commands that Enroot wants and the lab does not, with their packages."""


@dataclass(frozen=True)
class RuntimeChoice:
    """A runtime to use in place of the stand-ins; None is the stand-in."""

    pyxis: Path | None = None
    """The plugin's shared object."""
    enroot: Path | None = None
    """The command `enroot`; its helpers are in the same folder."""

    @classmethod
    def of(cls, pyxis: str | Path | None = None, enroot: str | Path | None = None) -> RuntimeChoice:
        """What `towline lab up --pyxis-plugin --enroot` asks for; of Enroot also the prefix it is installed in.

        Raises:
            LabError: there is no such thing, or the lab's hosts would not see it.
        """
        return cls(
            None if pyxis is None else _visible(_plugin_at(Path(pyxis))),
            None if enroot is None else _visible(_command_at(Path(enroot))),
        )

    def require(self) -> None:
        """Raises `LabError` with the exact command when a package that Enroot needs is missing."""
        if self.enroot is None:
            return
        missing = [name for command, name in _ENROOT_NEEDS.items() if not shutil.which(command, path=process.PATH)]
        if missing:
            fix = f"apt-get install --yes --no-install-recommends {' '.join(missing)}"
            raise LabError(f"Enroot needs packages that are not installed: {', '.join(missing)}.", fix=f"Run `{fix}`.")

    def describe(self) -> str:
        """The runtime in a line: versions, and paths or that they are stand-ins."""
        pyxis = f"stand-in for Pyxis {STAND_IN_PYXIS}"
        enroot = f"stand-in for Enroot {STAND_IN_ENROOT}"
        if self.pyxis is not None:
            pyxis = f"Pyxis {_version(self.pyxis, _PYXIS_VERSION)} ({self.pyxis})"
        if self.enroot is not None:
            enroot = f"Enroot {_version(self.enroot, _ENROOT_VERSION)} ({self.enroot})"
        return f"{pyxis}, {enroot}"


STAND_INS = RuntimeChoice()


def load(layout: Layout) -> RuntimeChoice:
    """The choice the lab was brought up with last."""
    try:
        saved: dict[str, str | None] = json.loads(_file(layout).read_text())
    except (OSError, ValueError):
        return STAND_INS
    pyxis, enroot = saved.get("pyxis"), saved.get("enroot")
    return RuntimeChoice(Path(pyxis) if pyxis else None, Path(enroot) if enroot else None)


def save(layout: Layout, choice: RuntimeChoice) -> None:
    """Make it the choice of the lab; the part `runtime` is out of date then, when it was another."""
    if load(layout) == choice:
        return
    layout.state.mkdir(parents=True, exist_ok=True)
    names = {"pyxis": choice.pyxis, "enroot": choice.enroot}
    replace(_file(layout), json.dumps({name: path and str(path) for name, path in names.items()}) + "\n", 0o644)


def _file(layout: Layout) -> Path:
    return layout.state / "runtime.json"


def _plugin_at(path: Path) -> Path:
    if not path.is_file():
        raise LabError(f"There is no Pyxis plugin {path}.", fix="Give the path of its spank_pyxis.so.")
    return path.resolve()


def _command_at(path: Path) -> Path:
    command = path / "bin" / "enroot" if path.is_dir() else path
    if not command.is_file():
        raise LabError(f"There is no Enroot in {path}.", fix="Give the path of its command, or the prefix it is in.")
    return command.resolve()


def _visible(path: Path) -> Path:
    if hidden := hidden_inside(path):
        raise LabError(
            f"The lab's hosts would not see {path}.",
            why=f"Each host has a {hidden} of its own.",
            fix="Put it somewhere else, for example below /opt.",
        )
    return path


def _version(path: Path, pattern: bytes) -> str:
    try:
        found = re.search(pattern, path.read_bytes())
    except OSError:
        return "that is gone"
    return found[1].decode() if found else "of an unknown version"
