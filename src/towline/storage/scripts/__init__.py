"""The scripts of this room, as they are sent to a login host."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

from towline.slurm.scripts import filled

_READS = "# shellcheck source=src/towline/storage/scripts/in-use.sh\n. ./in-use.sh\n"


@cache
def script(name: str) -> str:
    """The text of `<name>.sh`, with the files that it reads, of this room or the Slurm room's, written into it."""
    return filled(_text(name).replace(_READS, _text("in-use")))


def _text(name: str) -> str:
    return files(__name__).joinpath(f"{name}.sh").read_text(encoding="utf-8")
