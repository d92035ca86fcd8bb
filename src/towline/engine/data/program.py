"""The program that brings data, as one file that a Python on the cluster runs."""

from __future__ import annotations

import io
import zipfile
from functools import cache
from importlib.resources import files

_ROOM = "towline/stager"
_START = "import sys\nfrom towline.stager.__main__ import main\nsys.exit(main(sys.argv[1:]))\n"


@cache
def program() -> bytes:
    """The room `stager` as an archive that Python runs, the same bytes each time."""
    sources = {"__main__.py": _START, "towline/__init__.py": ""}
    for file in files("towline.stager").iterdir():
        if file.name.endswith(".py"):
            sources[f"{_ROOM}/{file.name}"] = file.read_text(encoding="utf-8")
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_STORED) as archive:  # not every Python there has zlib
        for name, text in sorted(sources.items()):
            archive.writestr(zipfile.ZipInfo(name), text)
    return packed.getvalue()
