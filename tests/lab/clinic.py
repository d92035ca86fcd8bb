"""The doctor on the lab: what `towline doctor --json` says, with settings overridden and connections of its own."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.lab.terminal import Done, Terminal
from towline.lab import Lab
from towline.lab.layout import ALICE


@dataclass
class Clinic:
    """Runs the doctor.

    Attributes:
        folder: state, sockets and copies of keys.
        settings: settings of the profile that are overridden, as in `TOWLINE_<SETTING>`.
    """

    lab: Lab
    folder: Path
    settings: dict[str, str] = field(default_factory=dict[str, str])
    _sockets: list[Path] = field(default_factory=list[Path])

    def terminal(self, **environment: str) -> Terminal:
        """A terminal whose connections no earlier command has opened."""
        # Sockets have short paths, or they are put where other processes' are.
        sockets = Path(tempfile.mkdtemp(prefix="tl-", dir="/tmp"))
        self._sockets.append(sockets)
        overrides = {f"TOWLINE_{name.upper()}": text for name, text in self.settings.items()}
        return Terminal(self.folder / "state", {"XDG_RUNTIME_DIR": str(sockets), **overrides, **environment})

    def visit(self, *words: str, **environment: str) -> Findings:
        """Let the doctor look."""
        terminal = self.terminal(**environment)
        return Findings(terminal("doctor", "--json", *words, timeout=300))

    def key(self, mode: int = 0o600) -> Path:
        """A copy of alice's key, set as the profile's."""
        path = self.folder / "key"
        shutil.copy(self.lab.paths.key(ALICE), path)
        path.chmod(mode)
        self.settings["identity_file"] = str(path)
        return path

    def known_hosts(self) -> Path:
        """A copy of the lab's host keys, set as the profile's."""
        path = self.folder / "known_hosts"
        shutil.copy(self.lab.paths.known_hosts, path)
        self.settings["known_hosts_file"] = str(path)
        return path

    def as_alice(self, script: str, host: str = "login1") -> str:
        """What a shell line prints on the cluster; it must work."""
        done = self.lab.run_on(host, ["sh", "-c", script], user=ALICE.name, timeout=60)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def end(self) -> None:
        """End the connections that were left for next processes."""
        for folder in self._sockets:
            for path in folder.glob("towline/*"):
                if path.is_socket():
                    leave = ["ssh", "-o", f"ControlPath={path}", "-O", "exit", "x"]
                    subprocess.run(leave, capture_output=True, check=False)
            shutil.rmtree(folder, ignore_errors=True)


@dataclass
class Findings:
    """What the doctor said."""

    done: Done

    @property
    def checks(self) -> list[dict[str, Any]]:
        """Every check."""
        assert self.done.out, self.done.err
        return self.done.lines[-1]["doctor"]["checks"]

    @property
    def failed(self) -> list[str]:
        """The ids of the checks that fail, without repeats."""
        return list(dict.fromkeys(each["id"] for each in self.checks if each["verdict"] == "fails"))

    def __getitem__(self, name: str) -> dict[str, Any]:
        """The first finding of that id, one that fails before others."""
        found = [each for each in self.checks if each["id"] == name]
        return sorted(found, key=lambda each: each["verdict"] != "fails")[0]

    def all(self, name: str) -> list[dict[str, Any]]:
        """Every finding of that id."""
        return [each for each in self.checks if each["id"] == name]

    def command(self, name: str, step: str) -> str:
        """The command that a finding's fix gives in the step with those words."""
        return self[name]["fix"].partition(f"{step}: ")[2].partition("\n")[0]


def follow(command: str, **environment: str) -> str:
    """Run a command that a fix gives, as a person would paste it; what it prints."""
    done = subprocess.run(
        ["sh", "-c", command],
        env={**os.environ, **environment},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, f"{command}: {done.stderr}"
    return done.stdout
