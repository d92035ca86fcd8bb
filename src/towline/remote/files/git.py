"""What git says of a local directory."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from towline.models.errors import ConfigError

_NONE = b"not a git repository"


@dataclass(frozen=True)
class Listing:
    """The files of a directory that are tracked, or neither tracked nor ignored.

    Attributes:
        paths: below the directory, sorted; tracked ones may be missing there.
        untracked: those that git does not know.
        commit: the commit that is checked out; empty before the first one.
    """

    paths: tuple[str, ...]
    untracked: frozenset[str]
    commit: str


async def list_files(folder: Path) -> Listing | None:
    """The files of a directory in a working tree of git; None when it is in none, or there is no git.

    Raises:
        ConfigError: git does not read the repository, for example one that belongs to another user.
    """
    try:
        (status, found, words), (_, commit, _) = await asyncio.gather(
            _git(folder, "ls-files", "-z", "-t", "--cached", "--others", "--exclude-standard"),
            _git(folder, "rev-parse", "--verify", "--quiet", "HEAD"),
        )
    except FileNotFoundError:
        return None
    if status:
        if _NONE in words:
            return None
        raise ConfigError(
            f"git cannot list the files of {folder}",
            why=words.decode(errors="replace").strip(),
            fix="Do what git says, or give a directory that is in no repository.",
        )
    entries = {os.fsdecode(entry[2:]).rstrip("/"): entry[:1] for entry in found.split(b"\0") if entry}
    untracked = frozenset(path for path, tag in entries.items() if tag == b"?")
    return Listing(tuple(sorted(entries)), untracked, commit.decode().strip())


async def difference(folder: Path, without: Sequence[str]) -> bytes:
    """How the tracked files of a directory differ from the commit, but for some of them."""
    excluded = (f":(exclude,literal){path}" for path in without)
    options = ("--binary", "--no-color", "--no-ext-diff", "--no-textconv", "--relative")
    status, found, _ = await _git(folder, "diff", *options, "HEAD", "--", ".", *excluded)
    return b"" if status else found


async def _git(folder: Path, *words: str) -> tuple[int, bytes, bytes]:
    pipe = asyncio.subprocess.PIPE
    environment = {**os.environ, "LC_ALL": "C", "GIT_OPTIONAL_LOCKS": "0"}
    process = await asyncio.create_subprocess_exec(
        *("git", "-C", str(folder), *words), stdin=asyncio.subprocess.DEVNULL, stdout=pipe, stderr=pipe, env=environment
    )
    found, said = await process.communicate()
    return process.returncode or 0, found, said
