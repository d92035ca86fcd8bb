"""Going on where an earlier start of the same job stopped."""

import json
import os
import pickletools
import zipfile
from typing import Any, Dict, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Tuple, cast

from towline.runner.keys import leaves
from towline.runner.naming import DIRECTORY, NOT_THEIRS, epoch_of, step_of
from towline.runner.telling import say
from towline.runner.wholeness import FILES, flaw_of

KEY = "resume_training_checkpoint_path"
_OFF = ("0", "false", "no", "off")
_STATE = ("optim", "trainer_state", "rng_state", ".distcp", "scheduler")
"""In the names of what only a trainer needs; a directory with such goes before one with weights alone."""
_PIECES = ("optimizer", "scheduler", "scaler", "rng_state", "training_args")
"""How files begin that are one part of a checkpoint, and no checkpoint without the others."""
_STEPS = ("global_step", "iteration", "iter")
_MOST = 16 << 20
"""Bytes of a pickle that are looked at for the step."""


def resume(specs: Mapping[str, Any], folders: Sequence[str], env: Mapping[str, str]) -> Dict[str, str]:
    """Which keys of a specification should name which checkpoint, so that the job goes on.

    Only keys `resume_training_checkpoint_path` that are there and empty count, in lists, too.

    Args:
        specs: the specification, with local paths.
        folders: directories of this job's outputs.
        env: the environment; `TAO_AUTO_RESUME=0` switches it off.

    Returns:
        Dotted key → path of the newest whole checkpoint; empty when there is none, or nothing to set.
    """
    if env.get("TAO_AUTO_RESUME", "1").lower() in _OFF:
        return {}
    empty = [key for key, value in leaves(specs) if key.rpartition(".")[2] == KEY and not value]
    found = newest(folders) if empty else ""
    return {key: found for key in empty} if found else {}


def newest(folders: Sequence[str]) -> str:
    """The checkpoint of the furthest step among those that are whole; those that are not are told. Empty for none."""
    for each in _furthest_first([each for folder in folders for each in _candidates(folder)]):
        flaw = flaw_of(each.path)
        if not flaw:
            return each.path
        say("not going on from {}: {}".format(each.path, flaw))
    return ""


class Candidate(NamedTuple):
    """A file or directory that may be a checkpoint.

    Attributes:
        path: where it is.
        step, epoch: what it says of itself, else its name; None for nothing.
        has_state: whether it has more than weights.
        mtime: when it was last written, in seconds since 1970.
    """

    path: str
    step: Optional[int]
    epoch: Optional[int]
    has_state: bool
    mtime: float


def _candidates(folder: str) -> Iterator[Candidate]:
    for place, folders, names in os.walk(folder):
        whole = [name for name in folders if DIRECTORY.fullmatch(name) or name.endswith(FILES)]
        folders[:] = [name for name in folders if name not in NOT_THEIRS and name not in whole and not _is_hidden(name)]
        files = [name for name in names if name.endswith(FILES) and not name.startswith(_PIECES)]
        for name in [*whole, *files]:
            path = os.path.join(place, name)
            if not os.path.islink(path):  # what it leads to is there under a name of its own
                yield _candidate(path, os.path.relpath(path, folder))


def _is_hidden(name: str) -> bool:
    """Trainers write below such names until a checkpoint is whole."""
    return name.startswith((".", "tmp")) or name.endswith(".tmp")


def _candidate(path: str, below: str) -> Candidate:
    try:
        step, epoch = _of_directory(path) if os.path.isdir(path) else _of_file(path)
        mtime = os.stat(path).st_mtime
    except OSError:
        step, epoch, mtime = None, None, 0.0
    if step is None and epoch is None:
        step, epoch = step_of(below), epoch_of(below)
    return Candidate(path, step, epoch, _has_state(path), mtime)


def _has_state(path: str) -> bool:
    if not os.path.isdir(path):
        return not path.endswith(".safetensors")
    return any(word in name for _, _, names in os.walk(path) for name in names for word in _STATE)


def _furthest_first(found: List[Candidate]) -> List[Candidate]:
    """By step if all that tell anything tell a step, else by epoch if all tell one, else by time; then all others."""
    telling = [each for each in found if each.step is not None or each.epoch is not None]
    by_step = all(each.step is not None for each in telling)
    by_epoch = all(each.epoch is not None for each in telling)

    def rank(each: Candidate) -> Tuple[bool, float, float, bool, float]:
        step, epoch = -1 if each.step is None else each.step, -1 if each.epoch is None else each.epoch
        first, second = (step, epoch) if by_step else (epoch, step) if by_epoch else (each.mtime, 0)
        return each in telling, first, second, each.has_state, each.mtime

    return sorted(found, key=rank, reverse=True)


# --- What checkpoints say of themselves ---


def _of_directory(path: str) -> Tuple[Optional[int], Optional[int]]:
    """Step of what Transformers' Trainer has written."""
    try:
        with open(os.path.join(path, "trainer_state.json"), encoding="utf-8") as file:
            facts: Any = json.load(file)
        return int(cast("Dict[str, Any]", facts)["global_step"]), None
    except (OSError, ValueError, KeyError, TypeError):
        return None, None


def _of_file(path: str) -> Tuple[Optional[int], Optional[int]]:
    """Step and epoch in a file of PyTorch, read without running what is in its pickle."""
    found: Dict[str, int] = {}
    try:
        with zipfile.ZipFile(path) as archive:
            name = next(each for each in archive.namelist() if each.endswith("/data.pkl"))
            with archive.open(name) as file:
                for key, number in _numbers(file.read(_MOST)):
                    found.setdefault(key, number)
                    if "epoch" in found and _STEPS[0] in found:
                        break
    except (OSError, ValueError, StopIteration, zipfile.BadZipFile, NotImplementedError):
        pass
    step = next((found[key] for key in _STEPS if key in found), None)
    return step, found.get("epoch")


def _numbers(pickle: bytes) -> Iterator[Tuple[str, int]]:
    """Numbers that stand right behind a text, as a table's value behind its key.

    Raises:
        ValueError: it is cut off.
    """
    key = ""
    for opcode, value, _ in pickletools.genops(pickle):
        if isinstance(value, str) and "UNICODE" in opcode.name:
            key = value
        elif "PUT" in opcode.name or opcode.name == "MEMOIZE":
            continue
        else:
            if key in ("epoch", *_STEPS) and "INT" in opcode.name and isinstance(value, int):
                yield key, value
            key = ""
