"""The programs that run elsewhere than here, each as one file that a Python there runs."""

from __future__ import annotations

import io
import zipfile
from functools import cache
from importlib.resources import files

_START = "import sys\nfrom towline.{room}.__main__ import main\nsys.exit(main(sys.argv[1:]))\n"
_NEEDS = {"stager": ("stager",), "runner": ("runner", "stager")}
"""Program → the rooms that are packed."""


@cache
def program(room: str = "stager") -> bytes:
    """A room with what it imports, as an archive that Python runs, the same bytes each time.

    Args:
        room: `stager`, which brings data, or `runner`, which runs the commands of `build_entrypoint`.
    """
    sources = {"__main__.py": _START.format(room=room), "towline/__init__.py": ""}
    for each in _NEEDS[room]:
        for file in files(f"towline.{each}").iterdir():
            if file.name.endswith(".py"):
                sources[f"towline/{each}/{file.name}"] = file.read_text(encoding="utf-8")
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_STORED) as archive:  # not every Python there has zlib
        for name, text in sorted(sources.items()):
            archive.writestr(zipfile.ZipInfo(name), text)
    return packed.getvalue()
