"""The files of a job's results."""

import fnmatch
import os
from typing import Iterator, Sequence, Tuple


def files_of(source: str, excludes: Sequence[str] = ()) -> Iterator[Tuple[str, str]]:
    """Every plain file with its path below the source; a job's links and devices are not followed.

    Args:
        source: a file or directory.
        excludes: patterns (fnmatch) of a directory's files, by their path below it, that are left out.
    """
    if os.path.isfile(source) and not os.path.islink(source):
        yield source, ""
    for folder, _, names in os.walk(source):
        for name in sorted(names):
            path = os.path.join(folder, name)
            below = os.path.relpath(path, source)
            stays = os.path.islink(path) or any(fnmatch.fnmatch(below, pattern) for pattern in excludes)
            if os.path.isfile(path) and not stays:
                yield path, below
