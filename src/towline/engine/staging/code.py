"""`--code`: the working tree on the cluster, as a directory named after its content that never changes.

What the last snapshot of the same directory held is remembered here, so only what differs is sent, in one call; the
rest are hard links over there. When that snapshot is gone everything is sent.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
from bisect import bisect_right
from collections.abc import Callable, Mapping
from itertools import accumulate
from pathlib import Path

from towline.engine.events import Progress
from towline.engine.outcomes import check_ending, last_words
from towline.engine.session import Session
from towline.engine.staging import room
from towline.engine.staging.digests import LOOKS_SECRET, Digests
from towline.engine.staging.memory import memory_file, recall, remember
from towline.engine.staging.trees import working_tree
from towline.models.code import Code, CodeFile
from towline.models.errors import NotFound, SpecError, StagingFailed
from towline.remote.base import Ending, Operation, Outcome
from towline.remote.files import git
from towline.remote.files.push import sum_line
from towline.slurm.space import parse_space, says_full
from towline.storage.scripts import script

MOUNT = "/code"
"""Where a container sees the code, unless the job has a `workdir`."""
_MOST = 1 << 30
"""Bytes of a working tree; more is data, or what a build left there."""
_MOST_DIFF = 1 << 20
_LARGE = 32 << 20
"""Bytes of news for which it is worth a question whether there is room."""
_ASK = "-"
_DONE, _ABSENT, _CHANGED = 0, 44, 46

_BLOCK = 512
"""Bytes of tar's blocks: a file is sent behind a head of that size, and fills whole ones."""


async def look(session: Session, text: str) -> Code:
    """What of a directory goes to the cluster; nothing is sent.

    Raises:
        NotFound: there is no such directory.
        SpecError: it cannot be read, is empty, or holds more than code.
        ConfigError: git does not read its repository.
    """
    folder = _folder(text)
    try:
        tree = await working_tree(folder)
        digests = Digests(folder, memory_file(session, folder, "digests"))
        found = await asyncio.to_thread(digests.contents, tree.paths)
    except OSError as error:
        raise SpecError(
            f"the code in {folder} cannot be read", why=str(error), fix="Mend that, or name it in .towlineignore."
        ) from None
    _check_files(folder, found.files)
    diff = await git.difference(folder, list(found.left_out)) if tree.commit else b""
    name = _identity(found.files)
    return Code(
        folder=folder,
        id=name,
        place=f"{session.profile.root}/code/{name}",
        files=found.files,
        left_out=found.left_out,
        commit=tree.commit,
        dirty=bool(diff) or tree.untracked,
        diff=diff,
    )


def _folder(text: str) -> Path:
    folder = Path(text).expanduser().absolute()
    if not folder.is_dir():
        raise NotFound(f"the code directory {folder} is not there", fix="Give the directory of your working tree.")
    return folder


def _check_files(folder: Path, files: Mapping[str, CodeFile]) -> None:
    if not files:
        raise SpecError(f"there are no files in the code directory {folder}", fix="Give another, or leave --code out.")
    total = sum(file.size for file in files.values())
    if total > _MOST:
        largest = sorted(files, key=lambda path: -files[path].size)[:3]
        raise SpecError(
            f"the code directory {folder} holds {total / (1 << 30):.1f} GiB, which is more than code",
            why="The largest files: " + ", ".join(f"{path} ({files[path].size >> 20} MiB)" for path in largest),
            fix="Name them in .towlineignore; data goes to the cluster with `towline push`.",
        )


def _identity(files: Mapping[str, CodeFile]) -> str:
    total = hashlib.sha256()
    for path in sorted(files):
        file = files[path]
        total.update(os.fsencode(f"{path}\0{file.digest}\0{'x' if file.executable else '-'}\0"))
    return total.hexdigest()[:32]


def notes(code: Code) -> tuple[str, ...]:
    """What the user should know of it, in sentences."""
    state = f", commit {code.commit[:12]}{' with changes' if code.dirty else ''}" if code.commit else ""
    what = f"the code is {len(code.files)} files of {code.folder}, {code.size / 1e6:.1f} MB{state}"
    secrets = [path for path, why in code.left_out.items() if why == LOOKS_SECRET]
    others = [f"{path} was left out: {why}" for path, why in code.left_out.items() if why != LOOKS_SECRET]
    hidden = [f"left out, for they look like secrets: {', '.join(secrets)}"] if secrets else []
    return (what, *hidden, *others)


def job_files(code: Code) -> dict[str, bytes]:
    """What the job directory says of the code."""
    fits = len(code.diff) <= _MOST_DIFF
    about = {
        "id": code.id,
        "place": code.place,
        "folder": str(code.folder),
        "commit": code.commit,
        "dirty": code.dirty,
        "diff_bytes": len(code.diff),
        "files": len(code.files),
        "bytes": code.size,
        "left_out": dict(code.left_out),
    }
    found = {"script/code.json": json.dumps(about, indent=1).encode() + b"\n"}
    return {**found, "script/code.diff": code.diff} if code.diff and fits else found


_Told = Callable[[Progress], None] | None


def _meter(news: Mapping[str, CodeFile], told: Callable[[Progress], None]) -> Callable[[int], None]:
    """What counts the bytes that are handed to the connection."""
    ends = list(accumulate(_BLOCK + (file.size + _BLOCK - 1) // _BLOCK * _BLOCK for file in news.values()))
    done = 0

    def sent(count: int) -> None:
        nonlocal done
        done += count
        told(Progress(bisect_right(ends, done), len(ends), done, max([done, *ends[-1:]])))

    return sent


async def bring(session: Session, code: Code, progress: Callable[[Progress], None] | None = None) -> None:
    """See that the snapshot is on the cluster: one call when an earlier one of the same directory is there.

    Args:
        session: the cluster.
        code: what `look` found.
        progress: told what was handed to the connection, of what has to be sent.

    Raises:
        StagingFailed: it could not be written there, there is no room, or a file changed meanwhile.
        Unreachable, OutcomeUnknown: the connection failed.
    """
    memory = memory_file(session, code.folder, "sent")
    earlier = await asyncio.to_thread(recall, memory)
    base = _identity(earlier) if earlier else ""
    news = _news(code, earlier)
    small = base not in ("", code.id) and sum(file.size for file in news.values()) < _LARGE
    if not small and await _ask(session, code, news):
        await asyncio.to_thread(remember, memory, code.files)
        return
    if base in ("", code.id) or not await _call(session, code, base, earlier, progress):
        # The question has made the directory that this is sent to.
        if base not in ("", code.id) and await _ask(session, code, code.files):
            return
        await _call(session, code, "", {}, progress)
    await asyncio.to_thread(remember, memory, code.files)


async def _ask(session: Session, code: Code, news: Mapping[str, CodeFile]) -> bool:
    """Whether the snapshot is there; if not, there is room for what has to be sent."""
    root = session.profile.root
    outcome = await session.run(Operation("code", script("snapshot"), (root, code.id, _ASK), timeout=None))
    check_ending(outcome, "asking for the code")
    if outcome.exit_code != _ABSENT:
        await _check(session, code, outcome)
        return True
    folders = {path.rpartition("/")[0] for path in code.files}
    space = parse_space(outcome.stdout.decode(errors="replace"))
    room.check_room(space, f"{root}/code", (file.size for file in news.values()), folders=len(folders))
    return False


async def _call(session: Session, code: Code, base: str, earlier: Mapping[str, CodeFile], told: _Told) -> bool:
    """Send what differs; False when the earlier snapshot is not there."""
    operation = Operation(
        "code",
        script("snapshot"),
        (session.profile.root, code.id, base),
        await asyncio.to_thread(_parcel, code, earlier),
        timeout=None,
        where=f"{session.profile.root}/code",
        sent=_meter(_news(code, earlier), told) if told else None,
    )
    outcome = await session.run(operation)
    if base and outcome.ending is Ending.NOT_STARTED:
        return False  # perhaps the directory is gone; the next call tells
    if outcome.exit_code == _ABSENT and base:
        return False
    await _check(session, code, outcome)
    return True


async def _check(session: Session, code: Code, outcome: Outcome) -> None:
    """Return when the script has done what it should."""
    words = last_words(outcome.stderr) or outcome.detail
    if not outcome.ok and says_full(words):
        raise await room.no_room(session.remote, f"{session.profile.root}/code", words)
    check_ending(outcome, "sending the code")
    if outcome.exit_code == _CHANGED:
        raise StagingFailed(f"a file in {code.folder} changed while it was sent", fix="Run the command again.")
    if outcome.exit_code != _DONE:
        raise StagingFailed(
            f"the code could not be put into {session.profile.root}/code",
            why=words or f"The script ended with exit code {outcome.exit_code}.",
            fix="See that the directory is yours; nothing half-made was left.",
        )


def _news(code: Code, earlier: Mapping[str, CodeFile]) -> dict[str, CodeFile]:
    return {path: file for path, file in code.files.items() if earlier.get(path) != file}


def _parcel(code: Code, earlier: Mapping[str, CodeFile]) -> dict[str, bytes | Path]:
    news = _news(code, earlier)
    gone = [path for path, file in earlier.items() if code.files.get(path) != file]
    links = [part for path, file in news.items() if file.target is not None for part in (file.target, path)]
    return {
        **{f"tree/{path}": code.folder / path for path, file in news.items() if file.target is None},
        "gone": _ended(gone),
        "links": _ended(links),
        "sums": b"".join(sum_line(path, file.digest) for path, file in news.items() if file.target is None),
    }


def _ended(texts: list[str]) -> bytes:
    return b"".join(os.fsencode(text) + b"\0" for text in texts)
