"""Programs and libraries in C that faults are made with, compiled when one is first needed."""

from __future__ import annotations

import hashlib
from pathlib import Path

from towline.lab import process
from towline.lab.layout import Layout

_HERE = Path(__file__).parent
_FLAGS = "-O2 -std=gnu11 -Wall -Wextra -Werror"


def program(layout: Layout, name: str) -> Path:
    """The program made of NAME.c. Raises `LabError` when it does not compile."""
    return _built(layout, name, "")


def library(layout: Layout, name: str) -> Path:
    """The shared library made of NAME.c. Raises `LabError` when it does not compile."""
    return _built(layout, name, " -shared -fPIC -fvisibility=hidden")


def _built(layout: Layout, name: str, more: str) -> Path:
    """Named after what it was made of, so that a file in use is never written to and an old one never taken."""
    sources = [_HERE / f"{name}.c", *sorted(_HERE.glob("*.h"))]
    digest = hashlib.sha256(b"\0".join([more.encode(), *(source.read_bytes() for source in sources)])).hexdigest()
    target = layout.runtime / "faults" / f"{name}-{digest[:12]}"
    if not target.exists():
        target.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
        fresh = target.with_suffix(".new")
        process.run([*f"gcc {_FLAGS}{more}".split(), "-o", str(fresh), str(sources[0])])
        fresh.chmod(0o755)
        fresh.replace(target)
    return target
