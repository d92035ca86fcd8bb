"""Checkpoints by their names: which files and directories are some, of which epoch and step, and which one is meant."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from towline.runner import naming

CHECKPOINT_FILE_EXTENSIONS = (
    *(".pth", ".tlt", ".hdf5", ".pt", ".ckpt", ".engine", ".onnx", ".trt"),
    *(".safetensors", ".distcp"),
)


@dataclass(frozen=True)
class CheckpointCandidate:
    """A file or directory that may be a checkpoint.

    Attributes:
        path: where it is.
        epoch, step: what its name says; None when it says nothing.
        is_dir: whether it is a directory.
        is_latest, is_best: whether its name says so.
        mtime: when it was written, in seconds since 1970.
    """

    path: str
    epoch: int | None = None
    step: int | None = None
    is_dir: bool = False
    is_latest: bool = False
    is_best: bool = False
    mtime: float = 0.0


def checkpoint_epoch(path: str | os.PathLike[str]) -> int | None:
    """The epoch that a path names; None when it names none."""
    return naming.epoch_of(os.fspath(path))


def checkpoint_step(path: str | os.PathLike[str]) -> int | None:
    """The step or iteration that a path names; None when it names none."""
    return naming.step_of(os.fspath(path))


def build_checkpoint_candidate(
    path: str | os.PathLike[str], *, is_dir: bool = False, mtime: float = 0.0
) -> CheckpointCandidate:
    """What a path's name tells."""
    text = os.fspath(path)
    name = text.lower()
    return CheckpointCandidate(
        text, checkpoint_epoch(text), checkpoint_step(text), is_dir, "latest" in name, "best" in name, mtime
    )


def is_checkpoint(path: str) -> bool:
    """Whether a file below a results directory is a checkpoint, or a part of one."""
    parts = path.split("/")
    return path.lower().endswith(CHECKPOINT_FILE_EXTENSIONS) and not naming.NOT_THEIRS.intersection(parts[:-1])


def checkpoints_among(paths: Iterable[str]) -> list[str]:
    """The checkpoints among files below a results directory, by epoch and step; those in parts as their directory."""
    found: set[str] = set()
    for path in filter(is_checkpoint, paths):
        parts = path.split("/")
        place = next((index for index, part in enumerate(parts[:-1]) if naming.DIRECTORY.fullmatch(part)), None)
        found.add(path if place is None else "/".join(parts[: place + 1]))
    return sorted(found, key=_order)


def _order(path: str) -> tuple[int, int, str]:
    return (checkpoint_epoch(path) or 0, checkpoint_step(path) or 0, path)


def iter_local_checkpoint_candidates(
    experiment_dir: str | os.PathLike[str], *, include_dirs: bool = True
) -> list[CheckpointCandidate]:
    """The checkpoints below a local directory."""
    found: list[CheckpointCandidate] = []
    for root, folders, names in os.walk(experiment_dir):
        folders[:] = sorted(name for name in folders if name not in naming.NOT_THEIRS)
        for name in folders if include_dirs else ():
            place = Path(root, name)
            if naming.DIRECTORY.fullmatch(name) and any(place.iterdir()):
                found.append(build_checkpoint_candidate(place, is_dir=True, mtime=place.stat().st_mtime))
        for name in sorted(names):
            if name.lower().endswith(CHECKPOINT_FILE_EXTENSIONS):
                place = Path(root, name)
                found.append(build_checkpoint_candidate(place, mtime=place.stat().st_mtime))
    return found


def select_checkpoint_path(
    candidates: Sequence[CheckpointCandidate | str],
    *,
    epoch: int | None = None,
    step: int | None = None,
    action: str = "resume",
    prefer_directory: bool = False,
    allow_latest: bool = False,
) -> str | None:
    """The checkpoint that is meant; None when none fits.

    Trainers count epochs from 0 or from 1, so of epoch 5 one that is called 4 is taken when none is called 5. One that
    is only called `latest` does not fit a certain epoch or step, unless that is allowed.

    Args:
        candidates: those there are.
        epoch: where the training stopped; the furthest when not given.
        step: the same in steps.
        action: `evaluate`, `inference`, `export` and `best` take the best one where there is one.
        prefer_directory: whether whole directories come before files.
        allow_latest: whether one that says nothing but `latest` may be taken.
    """
    known = [build_checkpoint_candidate(each) if isinstance(each, str) else each for each in candidates]
    exact = epoch is not None or step is not None
    fitting = [each for each in known if _fits(each, epoch, step)]
    if not fitting and exact and allow_latest:
        fitting = [each for each in known if each.is_latest]
    best = action in ("evaluate", "eval", "inference", "infer", "export", "best")

    def rank(each: CheckpointCandidate) -> tuple[bool, bool, bool, bool, int, int, float]:
        return (
            best and each.is_best,
            epoch is not None and each.epoch == epoch,
            each.is_dir == prefer_directory,
            not each.is_latest,
            -1 if each.step is None else each.step,
            -1 if each.epoch is None else each.epoch,
            each.mtime,
        )

    return max(fitting, key=rank).path if fitting else None


def _fits(each: CheckpointCandidate, epoch: int | None, step: int | None) -> bool:
    good_epoch = (
        epoch is None or each.epoch == epoch or (each.epoch is not None and epoch > 0 and each.epoch == epoch - 1)
    )
    return good_epoch and (step is None or each.step == step)


def get_checkpoint_path(
    *,
    experiment_dir: str | os.PathLike[str],
    model_name: str = "",
    epoch: int | None = None,
    step: int | None = None,
    action: str = "resume",
    prefer_directory: bool = False,
    allow_latest: bool = False,
) -> str | None:
    """The checkpoint that is meant below a local directory; see `select_checkpoint_path`."""
    return select_checkpoint_path(
        iter_local_checkpoint_candidates(experiment_dir, include_dirs=prefer_directory or action == "resume"),
        epoch=epoch,
        step=step,
        action=action,
        prefer_directory=prefer_directory,
        allow_latest=allow_latest,
    )
