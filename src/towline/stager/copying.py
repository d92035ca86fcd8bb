"""Taking results to another place of the shared file system."""

import os
import shutil
from typing import List, Sequence, Tuple

from towline.stager.problems import Problem, of_system
from towline.stager.trees import files_of


def copy_all(source: str, target: str, excludes: Sequence[str] = ()) -> Tuple[int, int]:
    """Copy a file, or a directory's files below the target; each appears whole, and an equal one that is there stays.

    Args:
        source: a file or directory.
        target: an absolute path.
        excludes: patterns (fnmatch) of a directory's files, by their path below it, that are left out.

    Returns:
        How many files and bytes there are now.

    Raises:
        Problem: they do not fit, or one could not be written; then nothing half-made is left of it.
    """
    if os.path.isfile(source) and (target.endswith("/") or os.path.isdir(target)):
        target = os.path.join(target, os.path.basename(source))
    wanted = [(path, os.path.join(target, below) if below else target) for path, below in files_of(source, excludes)]
    try:
        missing = [(path, goal) for path, goal in wanted if not _is_there(path, goal)]
        _require_room(missing, target)
        for path, goal in missing:
            _copy(path, goal)
        return len(wanted), sum(os.path.getsize(goal) for _, goal in wanted)
    except OSError as error:
        raise of_system(error) from None


def _is_there(path: str, goal: str) -> bool:
    """Whether a copy of this very state is there: copies keep the time."""
    try:
        new, old = os.stat(path), os.lstat(goal)
    except OSError:
        return False
    return (new.st_size, int(new.st_mtime)) == (old.st_size, int(old.st_mtime))


def _require_room(missing: List[Tuple[str, str]], target: str) -> None:
    needed = sum(os.path.getsize(path) for path, _ in missing)
    folder = target
    while not os.path.isdir(folder):
        folder = os.path.dirname(folder)
    facts = os.statvfs(folder)
    free = facts.f_bavail * facts.f_frsize
    if needed > free:
        raise Problem("space", "{} bytes are needed and {} has {} free".format(needed, folder, free))


def _copy(path: str, goal: str) -> None:
    """Under another name first, then renamed."""
    os.makedirs(os.path.dirname(goal), exist_ok=True)
    fresh = "{}.towline-{}".format(goal, os.getpid())
    try:
        shutil.copy2(path, fresh)
        os.replace(fresh, goal)
    except OSError:
        if os.path.lexists(fresh):
            os.unlink(fresh)
        raise
