"""Chatter at every login: rc files of each kind of shell, and what sshd runs before any of them."""

from __future__ import annotations

import os
from pathlib import Path

from towline.lab.files import replace, write_in_place
from towline.lab.layout import ALICE, Layout

_HERE = Path(__file__).parent
_MARK = "# towline lab fault login-banner"
_RC_FILES = (".bashrc", ".cshrc", ".zshenv", ".config/fish/config.fish", ".ssh/rc")
"""Read by shells that only run a command, too; the last one by sshd itself, whatever the shell."""
_BANNER = "Submitted batch job 1\nUnauthorised use is logged. 1 2 3|COMPLETED|0:0\n"


def install(layout: Layout) -> Path:
    """Have alice's logins chatter; the script that does. Beside it, as .txt, is a text for sshd's Banner."""
    script = layout.state / "faults" / "noise.sh"
    replace(script, (_HERE / "noise.sh").read_text(), 0o755)
    replace(script.with_suffix(".txt"), _BANNER, 0o644)
    for path in _files(layout):
        before = path.read_text() if path.exists() else ""
        if _MARK not in before:
            _write(path, f"sh {script} {_MARK}\n{before}")
    return script


def remove(layout: Layout) -> None:
    """Leave the rc files as they were; what was made for this goes."""
    for path in _files(layout):
        if path.exists():
            kept = "".join(line for line in path.read_text().splitlines(keepends=True) if _MARK not in line)
            if kept:
                _write(path, kept)
            else:
                path.unlink()
    for name in ("noise.sh", "noise.txt"):
        (layout.state / "faults" / name).unlink(missing_ok=True)


def _files(layout: Layout) -> list[Path]:
    return [layout.home / ALICE.name / name for name in _RC_FILES]


def _write(path: Path, text: str) -> None:
    for folder in reversed(path.parents):
        if not folder.exists():
            folder.mkdir(mode=0o700)
            os.chown(folder, ALICE.uid, ALICE.uid)
    write_in_place(path, text, 0o600, (ALICE.uid, ALICE.uid))
