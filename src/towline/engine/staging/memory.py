"""What is remembered on this machine of a directory's code: a cache, without which more is read and sent."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Literal, cast

from towline.engine.session import Session
from towline.models.code import CodeFile


def memory_file(session: Session, folder: Path, kind: Literal["digests", "sent"]) -> Path:
    """The file that remembers the digests of a directory's files, or what of it a cluster has."""
    about = f"{folder}" if kind == "digests" else f"{folder}\0{session.profile.name}\0{session.profile.root}"
    key = hashlib.sha256(os.fsencode(about)).hexdigest()[:16]
    return session.store.directory / "code" / f"{key}.{kind}.json"


def recall(memory: Path) -> dict[str, CodeFile]:
    """What the last snapshot held; nothing when it is not known."""
    try:
        found = cast("dict[str, list[str]]", json.loads(memory.read_bytes()))
        return {path: CodeFile(digest, bool(mode)) for path, (digest, mode) in found.items()}
    except (OSError, ValueError, TypeError, AttributeError):
        return {}


def remember(memory: Path, files: Mapping[str, CodeFile]) -> None:
    """Keep what a snapshot holds; each file is whole, whoever else writes it."""
    kept = {path: [file.digest, "x" if file.executable else ""] for path, file in files.items()}
    with contextlib.suppress(OSError):
        memory.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        new = memory.with_name(f"{memory.name}.{os.getpid()}")
        new.write_text(json.dumps(kept))
        os.replace(new, memory)
