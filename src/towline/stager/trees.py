"""The files of a job's results."""

import os
from typing import Iterator, Tuple


def files_of(source: str) -> Iterator[Tuple[str, str]]:
    """Every plain file with its path below the source; a job's links and devices are not followed."""
    if os.path.isfile(source) and not os.path.islink(source):
        yield source, ""
    for folder, _, names in os.walk(source):
        for name in sorted(names):
            path = os.path.join(folder, name)
            if os.path.isfile(path) and not os.path.islink(path):
                yield path, os.path.relpath(path, source)
