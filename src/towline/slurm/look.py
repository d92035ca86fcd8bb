"""What a login host says of a job before it is sent (`scripts/look.sh`)."""

from __future__ import annotations

import re
from dataclasses import dataclass

from towline.models.site import NodeKind
from towline.slurm.doctor import Answer, Reply, Room, parse_answer, parse_room
from towline.slurm.refusals import Refusal, classify_refusal
from towline.slurm.site import parse_node_line
from towline.slurm.space import Space, parse_space

_START = re.compile(r"Job \d+ to start at (\d+) using \d+ \S+ on (?:nodes )?(\S+)(?: in partition (\S+))?")
_ALLOCATION = re.compile(r"^(?:sbatch: (?:error: )?)?allocation failure: ", re.MULTILINE)
_NOT_NOW = re.compile(r"down, drained|not available \(|nodes are busy|reserved", re.IGNORECASE)
_IDLE = re.compile(r"idle[~#%^!]?")


@dataclass(frozen=True)
class Start:
    """When and where Slurm would start a job, as `sbatch --test-only` says.

    Attributes:
        seconds: from now on the cluster's clock.
        nodes: the nodes.
        partition: the partition; empty where Slurm does not say.
    """

    seconds: int
    nodes: str
    partition: str = ""


@dataclass(frozen=True)
class NodesNow:
    """Equal nodes of one partition, as they are now.

    Attributes:
        partition: its name.
        kind: what each of them has, and how many there are.
        idle: whether no job is on them.
        shared: whether jobs hold a part of each.
    """

    partition: str
    kind: NodeKind
    idle: bool
    shared: bool


@dataclass(frozen=True)
class Look:
    """What was seen.

    Attributes:
        missing: required paths that do not exist.
        unreadable: required files that cannot be read.
        no_images: required images that are no squashfs files.
        no_pythons: required images without the Python that the command needs.
        no_ngcs: required images with nothing that brings data of NGC, which the command needs.
        room: the directory of jobs, or the nearest one that is there.
        space: what limits writing there.
        start: when the job would start; None when Slurm did not say.
        refusal: why sbatch would not take it; None when it would.
        passing: whether that is only so now.
        nodes: the nodes it may run on.
    """

    missing: tuple[str, ...] = ()
    unreadable: tuple[str, ...] = ()
    no_images: tuple[str, ...] = ()
    no_pythons: tuple[str, ...] = ()
    no_ngcs: tuple[str, ...] = ()
    room: Room | None = None
    space: Space | None = None
    start: Start | None = None
    refusal: Refusal | None = None
    passing: bool = False
    nodes: tuple[NodesNow, ...] = ()


def parse_look(stdout: str) -> Look:
    """Read the answer of the look script.

    Raises:
        ValueError: it broke off.
    """
    answer = parse_answer(stdout)
    if not answer.complete:
        raise ValueError("the cluster's answer broke off")
    test, free, space = answer.reply("test"), answer.reply("free"), answer.reply("space")
    refusal = _refusal(test) if test and not test.ok else None
    return Look(
        missing=answer.all("required", "missing"),
        unreadable=answer.all("required", "unreadable"),
        no_images=answer.all("required", "no-image"),
        no_pythons=answer.all("required", "no-python"),
        no_ngcs=answer.all("required", "no-ngc"),
        room=parse_room(answer.fact("place", "room")),
        space=parse_space(space.out) if space else None,
        start=_start(test, answer) if test and test.ok else None,
        refusal=refusal,
        passing=bool(refusal and _NOT_NOW.search(refusal.said)),
        nodes=tuple(found for line in (free.out if free else "").splitlines() if (found := parse_nodes_now(line))),
    )


def _start(test: Reply, answer: Answer) -> Start | None:
    found = _START.search(f"{test.err}\n{test.out}")
    now = answer.fact("place", "now")
    if not found or not now.isdecimal():
        return None
    return Start(max(0, int(found[1]) - int(now)), found[2], found[3] or "")


def _refusal(test: Reply) -> Refusal:
    return classify_refusal(_ALLOCATION.sub("", test.err or test.out))


def parse_nodes_now(line: str) -> NodesNow | None:
    """One line of sinfo with `FREE_FORMAT`; states may carry a sign, for example `idle~` for powered down."""
    parts = line.split("|")
    if len(parts) != 6:
        return None
    partition, count, state, *rest = parts
    found = parse_node_line("|".join((partition, count, *rest)))
    if found is None:
        return None
    word = state.strip().lower()
    return NodesNow(found[0], found[1], bool(_IDLE.fullmatch(word)), word.startswith("mix"))
