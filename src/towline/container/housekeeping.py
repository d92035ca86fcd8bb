"""Looking after the cache of images: what it has, what uses it, what can go."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from towline.container.cache import CachedImage
from towline.slurm.calls import Call
from towline.slurm.doctor import parse_answer
from towline.slurm.scripts import script


@dataclass(frozen=True)
class Shelved:
    """An image in the cache, as its keeper sees it.

    Attributes:
        image: the file.
        age: seconds since it was made.
        idle: seconds since a job was submitted that uses it, or since it was made.
        jobs: ids of the jobs that use it now.
        whole: whether it is as long as its superblock and, if there is one, its record say.
        intact: whether its checksum is the recorded one; None when it was not read or none is recorded.
        mine: whether it belongs to the user.
    """

    image: CachedImage
    age: int
    idle: int
    jobs: tuple[str, ...] = ()
    whole: bool = True
    intact: bool | None = None
    mine: bool = True

    @property
    def reference(self) -> str:
        """The image as it is recorded; its name where nothing is."""
        return self.image.notes.get("image", self.image.name)


@dataclass(frozen=True)
class Removal:
    """What became of an image that should go.

    Attributes:
        name: its name.
        outcome: `removed`, `used`, `missing`, `failed`, or `unsure` when Slurm did not say what uses it.
        detail: the jobs that use it, or why it failed.
        size: bytes that are free now.
    """

    name: str
    outcome: str
    detail: str = ""
    size: int = 0


def images_call(
    root: str,
    cache: str,
    names: Sequence[str] = (),
    *,
    read: Literal["list", "sum", "once"] = "list",
    setup: str = "",
) -> Call:
    """Ask for the images of the cache, all or these; read the answer with `parse_images`.

    With `sum` they are read whole, with `once` those that have changed since they were last read.
    """
    args = (root, cache, read, *names)
    return Call("images", script("images"), args, _setup(setup))


def parse_images(stdout: str) -> tuple[Shelved, ...]:
    """The images, the one last used first.

    Raises:
        ValueError: the answer is not whole, or Slurm did not say what uses them.
    """
    answer = parse_answer(stdout)
    facts = answer.facts.get("images", {})
    if not answer.complete or not answer.fact("images", "now").isdecimal():
        raise ValueError("the answer broke off")
    if "unsure" in facts:
        raise ValueError("Slurm did not say which jobs there are")
    notes: dict[str, dict[str, str]] = {}
    for line in facts.get("note", ()):
        name, _, rest = line.partition(" ")
        key, _, value = rest.partition("=")
        notes.setdefault(name, {})[key] = value
    uses = [line.split(" ") for line in facts.get("use", ())]
    sums = dict(line.split(" ", 1) for line in facts.get("sum", ()))
    now, uid = int(answer.fact("images", "now")), answer.fact("images", "uid")
    found: list[Shelved] = []
    for line in facts.get("file", ()):
        name, owner, size, modified = line.split(" ")
        image = CachedImage(name, int(owner), int(size), int(modified), notes.get(name, {}))
        times = [int(use[3]) for use in uses if use[0] == name and use[3].isdecimal()]
        recorded = image.notes.get("sha256")
        found.append(
            Shelved(
                image=image,
                age=max(0, now - image.modified),
                idle=max(0, now - max([image.modified, *times])),
                jobs=tuple(use[1] for use in uses if use[0] == name and use[2] == "alive"),
                whole=name not in facts.get("broken", ()) and (image.sound or not image.notes),
                intact=sums[name] == recorded if name in sums and recorded else None,
                mine=owner == uid,
            )
        )
    return tuple(sorted(found, key=lambda each: each.idle))


def to_prune(images: Sequence[Shelved], *, idle: int | None, keep: int | None) -> tuple[Shelved, ...]:
    """The images that a prune takes away: never one that a job uses, is somebody else's, or that no import made.

    Args:
        images: those of the cache.
        idle: seconds; what was not used for so long goes.
        keep: bytes; of the rest those unused the longest go until no more than this is there.
    """
    free = [each for each in images if not each.jobs and each.mine and each.image.notes]
    gone = [each for each in free if idle is not None and each.idle >= idle]
    left = sum(each.image.size for each in images) - sum(each.image.size for each in gone)
    for each in sorted(free, key=lambda each: each.idle, reverse=True):
        if keep is None or left <= keep:
            break
        if each not in gone:
            gone.append(each)
            left -= each.image.size
    return tuple(gone)


def remove_call(root: str, cache: str, names: Sequence[str], setup: str = "") -> Call:
    """Take images away that no job uses; read the answer with `parse_removals`."""
    return Call("images-remove", script("images-remove"), (root, cache, *names), _setup(setup))


def parse_removals(stdout: str) -> tuple[Removal, ...]:
    """What became of each.

    Raises:
        ValueError: the answer is not whole.
    """
    answer = parse_answer(stdout)
    if not answer.complete:
        raise ValueError("the answer broke off")
    removals: list[Removal] = []
    for outcome, lines in answer.facts.get("removed", {}).items():
        for line in lines:
            name, _, detail = line.partition(" ")
            size = int(detail) if outcome == "removed" and detail.isdecimal() else 0
            removals.append(Removal(name, outcome, "" if outcome == "removed" else detail.strip(), size))
    return tuple(removals)


def _setup(line: str) -> dict[str, bytes | Path]:
    return {"setup": f"{line}\n".encode()} if line.strip() else {}
