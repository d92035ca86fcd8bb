"""Which files of a local directory go to the cluster."""

from __future__ import annotations

import asyncio
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from towline.remote.files import git
from towline.storage.ignore import IGNORE_FILES, Pattern, is_covered, is_ignored, read_patterns

_OWN = IGNORE_FILES[-1:]


@dataclass(frozen=True)
class LocalTree:
    """The paths of a directory that no ignore file keeps here.

    Attributes:
        paths: files and symbolic links below it, sorted.
        commit: git's; empty without git.
        untracked: whether there are files among them that git does not know.
    """

    paths: tuple[str, ...]
    commit: str = ""
    untracked: bool = False


async def working_tree(folder: Path) -> LocalTree:
    """What git would keep of a directory, and what it does not know yet but would not ignore; without git `whole_tree`.

    `.towlineignore` leaves out further files. A directory of which git ignores everything is taken as if it were
    in no repository, and so are repositories below it that git does not look into.

    Raises:
        ConfigError: git does not read the repository.
    """
    listing = await git.list_files(folder)
    if listing is None or not listing.paths:
        return await asyncio.to_thread(whole_tree, folder)
    paths = await asyncio.to_thread(_without_ignored, folder, listing.paths)
    return LocalTree(paths, listing.commit, any(path in listing.untracked for path in paths))


def whole_tree(folder: Path) -> LocalTree:
    """Every file of a directory that its `.gitignore` and `.towlineignore` files do not keep; no `.git`."""
    return LocalTree(tuple(sorted(_walk(folder, "", (), IGNORE_FILES))))


def leave_out(folder: Path) -> bool:
    """Have what a directory below the current one holds stay out of snapshots of code; whether that is so from now on.

    It is for directories that results came to: they would go back to the cluster with the next job's code.
    """
    mark = folder / _OWN[0]
    if Path.cwd().resolve() not in folder.resolve().parents or mark.exists():
        return False
    mark.write_text("# Results that Towline has brought; they are no code of the next job.\n*\n", encoding="utf-8")
    return True


def _without_ignored(folder: Path, paths: tuple[str, ...]) -> tuple[str, ...]:
    """Without what `.towlineignore` files name; directories among them are repositories of their own."""
    bases = sorted({path.rpartition("/")[0] for path in paths if path.rpartition("/")[2] in _OWN})
    patterns = tuple(pattern for base in bases for pattern in _patterns(folder, base, _OWN))
    kept: list[str] = []
    for path in paths:
        if patterns and is_covered(path, patterns):
            continue
        if stat.S_ISDIR(_mode(folder / path)):
            kept += _walk(folder, path, patterns, IGNORE_FILES)
        else:
            kept.append(path)
    return tuple(sorted(kept))


def _walk(folder: Path, base: str, patterns: tuple[Pattern, ...], names: tuple[str, ...]) -> Iterator[str]:
    patterns = (*patterns, *_patterns(folder, base, names))
    with os.scandir(folder / base if base else folder) as entries:
        found = list(entries)
    for entry in found:
        path = f"{base}/{entry.name}" if base else entry.name
        inside = entry.is_dir(follow_symlinks=False)
        if entry.name == ".git" or is_ignored(path, patterns, folder=inside):
            continue
        if inside:
            yield from _walk(folder, path, patterns, names)
        else:
            yield path


def _patterns(folder: Path, base: str, names: tuple[str, ...]) -> tuple[Pattern, ...]:
    found: tuple[Pattern, ...] = ()
    for name in names:
        try:
            text = (folder / base / name).read_text(encoding="utf-8", errors="surrogateescape")
        except (FileNotFoundError, IsADirectoryError):
            continue
        found += read_patterns(text, base)
    return found


def _mode(path: Path) -> int:
    try:
        return path.lstat().st_mode
    except OSError:
        return 0
