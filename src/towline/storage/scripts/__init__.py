"""The scripts of this room, as they are sent to a login host."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

from towline.slurm.scripts import filled


@cache
def script(name: str) -> str:
    """The text of `<name>.sh`, with the files of the Slurm room that it reads written into it."""
    return filled(files(__name__).joinpath(f"{name}.sh").read_text(encoding="utf-8"))
