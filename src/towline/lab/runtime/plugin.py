"""Compiling the stand-ins for Pyxis and Enroot and putting what the lab uses where its hosts look for it."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
from collections.abc import Sequence
from pathlib import Path

from towline.lab import process
from towline.lab.layout import GPUS_PER_NODE, Layout
from towline.lab.runtime import choice
from towline.lab.runtime.choice import RuntimeChoice
from towline.lab.runtime.permissions import readable_by_all

_HERE = Path(__file__).parent
_PYXIS, _ENROOT = _HERE / "pyxis", _HERE / "enroot"
_HEADERS = Path("/usr/include/slurm")
_PLUGIN = "spank_pyxis.so"
"""Slurm names this file when a container cannot start; on real clusters it has this name."""
_COMPILE = "gcc -O2 -std=gnu11 -Wall -Wextra -Werror"
_AS_PLUGIN = "-shared -fPIC -fvisibility=hidden"
_SETTINGS = "runtime_path=/run/pyxis execute_entrypoint=0 container_scope=job sbatch_support=1"
"""As sites have them: containers with a name live as long as their job."""


def check(layout: Layout) -> str:
    """What is wrong with the built runtime; empty when it was made from these sources for this Slurm, as chosen."""
    if not _plugin(layout).exists():
        return "not built"
    return "" if _read(layout.runtime / "stamp") == _stamp(layout) else "not up to date"


def build(layout: Layout) -> None:
    """Build what `check` misses. To be done before the hosts boot, since they run `host-setup.sh` then.

    Raises:
        LabError: the stand-ins do not compile, for want of gcc or Slurm's headers.
    """
    if not check(layout):
        return
    chosen = choice.load(layout)
    with readable_by_all():
        _compile([*_AS_PLUGIN.split(), str(_ENROOT / "enter" / "pretend.c")], _PYXIS, _plugin(layout))
        _build_enroot(layout)
        _configure_enroot(layout, chosen)
        _put_commands(layout, chosen)
        _install(_HERE / "host-setup.sh", layout.runtime / "host-setup.sh")
        _write(layout.runtime / "gpus-per-node", f"{GPUS_PER_NODE}\n")
        plugin = chosen.pyxis or _plugin(layout)
        _write(layout.etc / "plugstack.conf.d" / "pyxis.conf", f"required {plugin} {_SETTINGS}\n")
        _write(layout.runtime / "stamp", _stamp(layout))


def in_use(layout: Layout) -> str:
    """The runtime in a line; `none` before it is built."""
    return choice.load(layout).describe() if _plugin(layout).exists() else "none"


def _compile(flags: Sequence[str], sources: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    fresh = target.with_name(f"{target.name}.new")
    process.run([*_COMPILE.split(), *flags, "-o", str(fresh), *sorted(map(str, sources.glob("*.c")))])
    # Renamed, never written in place: slurmd and srun may have the old one mapped.
    fresh.replace(target)


def _build_enroot(layout: Layout) -> None:
    library = _library(layout)
    _compile([], _ENROOT / "enter", library / "enroot-enter")
    for source in (*_ENROOT.glob("*.sh"), _ENROOT / "enroot"):
        _install(source, library / source.name)


def _configure_enroot(layout: Layout, chosen: RuntimeChoice) -> None:
    """The settings and mounts of the lab; of a given Enroot also its own hooks, mounts and variables."""
    etc = layout.runtime / "etc" / "enroot"
    shutil.rmtree(etc, ignore_errors=True)
    _write(etc / "enroot.conf", (_ENROOT / "enroot.conf").read_text().replace("@root@", str(layout.root)))
    own = _ENROOT if chosen.enroot is None else _configuration_of(chosen.enroot)
    for name in ("hooks.d", "environ.d"):
        if (own / name).is_dir():
            shutil.copytree(own / name, etc / name)
    for source in sorted({*(own / "mounts.d").glob("*.fstab"), _ENROOT / "mounts.d" / "50-lab-gpus.fstab"}):
        _install(source, etc / "mounts.d" / source.name, 0o644)


def _configuration_of(enroot: Path) -> Path:
    """The folder that was compiled into an Enroot as that of its configuration."""
    found = re.search(r'^config::init "(.*)/enroot\.conf"', enroot.read_text(), re.MULTILINE)
    return Path(found[1]) if found else enroot.parent.parent / "etc" / "enroot"


def _put_commands(layout: Layout, chosen: RuntimeChoice) -> None:
    library = _library(layout)
    _link(library / "given", chosen.enroot)
    for folder in ("bin", "gpu-bin"):
        _link(layout.runtime / folder / "enroot", library / ("enroot" if chosen.enroot is None else "given-enroot.sh"))
    for name in ("nvidia-smi", "dmesg"):
        _install(_HERE / name, layout.runtime / "gpu-bin" / name)


def _link(path: Path, target: Path | None) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    if target is None:
        path.unlink(missing_ok=True)
        return
    fresh = path.with_name(f"{path.name}.new")
    fresh.unlink(missing_ok=True)
    fresh.symlink_to(target)
    fresh.replace(path)


def _install(source: Path, target: Path, mode: int = 0o755) -> None:
    fresh = target.with_name(f"{target.name}.new")
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, fresh)
    fresh.chmod(mode)
    fresh.replace(target)


def _write(path: Path, text: str) -> None:
    fresh = path.with_name(f"{path.name}.new")
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh.write_text(text)
    fresh.replace(path)


def _plugin(layout: Layout) -> Path:
    return layout.runtime / "lib" / _PLUGIN


def _library(layout: Layout) -> Path:
    return layout.runtime / "lib" / "enroot"


def _stamp(layout: Layout) -> str:
    digest = hashlib.sha256(f"{_COMPILE} {_plugin(layout)} {GPUS_PER_NODE} {os.uname().machine}\n".encode())
    digest.update(f"{_SETTINGS} {choice.load(layout)}\n".encode())
    for path in sorted((*_PYXIS.rglob("*"), *_ENROOT.rglob("*"), *_HEADERS.glob("*version*.h"), *_HERE.glob("*"))):
        if path.is_file() and path.suffix not in (".py", ".pyc"):
            digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest() + "\n"


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""
