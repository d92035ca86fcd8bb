"""Compiling the stand-in for Pyxis and putting the runtime's commands where the lab's hosts look for them."""

from __future__ import annotations

import hashlib
import os
import shutil
from pathlib import Path

from towline.lab import process
from towline.lab.layout import GPUS_PER_NODE, Layout
from towline.lab.runtime.permissions import readable_by_all

_HERE = Path(__file__).parent
_SOURCES = _HERE / "pyxis"
_HEADERS = Path("/usr/include/slurm")
_COMMANDS = {"bin": ("enroot",), "gpu-bin": ("enroot", "nvidia-smi")}
_PLUGIN = "spank_pyxis.so"
"""Slurm names this file when a container cannot start; on real clusters it has this name."""
_COMPILE = "gcc -shared -fPIC -O2 -std=gnu11 -Wall -Wextra -Werror -fvisibility=hidden"


def check(layout: Layout) -> str:
    """What is wrong with the built runtime; empty when it was made from these sources for this Slurm."""
    if not _plugin(layout).exists():
        return "not built"
    return "" if _read(layout.runtime / "stamp") == _stamp(layout) else "not up to date"


def build(layout: Layout) -> None:
    """Build what `check` misses. To be done before the hosts boot, since they run `host-setup.sh` then.

    Raises:
        LabError: the plugin does not compile, for want of gcc or Slurm's headers.
    """
    if not check(layout):
        return
    with readable_by_all():
        _compile(layout)
        for folder, names in _COMMANDS.items():
            for name in names:
                _install(_HERE / name, layout.runtime / folder / name)
        _install(_HERE / "host-setup.sh", layout.runtime / "host-setup.sh")
        _write(layout.runtime / "gpus-per-node", f"{GPUS_PER_NODE}\n")
        _write(layout.etc / "plugstack.conf.d" / "pyxis.conf", f"required {_plugin(layout)}\n")
        _write(layout.runtime / "stamp", _stamp(layout))


def _compile(layout: Layout) -> None:
    plugin = _plugin(layout)
    plugin.parent.mkdir(parents=True, exist_ok=True)
    fresh = plugin.with_suffix(".new")
    process.run([*_COMPILE.split(), "-o", str(fresh), *sorted(map(str, _SOURCES.glob("*.c")))])
    # Renamed, never written in place: slurmd and srun may have the old one mapped.
    fresh.replace(plugin)


def _install(source: Path, target: Path) -> None:
    fresh = target.with_name(f"{target.name}.new")
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, fresh)
    fresh.chmod(0o755)
    fresh.replace(target)


def _write(path: Path, text: str) -> None:
    fresh = path.with_name(f"{path.name}.new")
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh.write_text(text)
    fresh.replace(path)


def _plugin(layout: Layout) -> Path:
    return layout.runtime / "lib" / _PLUGIN


def _stamp(layout: Layout) -> str:
    digest = hashlib.sha256(f"{_COMPILE} {_plugin(layout)} {GPUS_PER_NODE} {os.uname().machine}\n".encode())
    for path in sorted((*_SOURCES.iterdir(), *_HEADERS.glob("*version*.h"), *_HERE.glob("*"))):
        if path.is_file() and path.suffix not in (".py", ".pyc"):
            digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest() + "\n"


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""
