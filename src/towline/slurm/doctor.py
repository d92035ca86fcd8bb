"""Asking a login host, and a job, for all that a diagnosis needs (`scripts/doctor.sh`, `scripts/deep.sh`)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Literal

from towline.models.site import Partition
from towline.slurm.calls import Call
from towline.slurm.commands import SINFO_FORMAT
from towline.slurm.frames import is_complete, parse_frames
from towline.slurm.scripts import script
from towline.slurm.site import parse_config, parse_partitions

Role = Literal["write", "look", "remove", "none"]


@dataclass(frozen=True)
class Reply:
    """What one of Slurm's commands answered.

    Attributes:
        code: its exit code.
        out, err: what it wrote.
    """

    code: int
    out: str = ""
    err: str = ""

    @property
    def ok(self) -> bool:
        """Whether it did not fail."""
        return self.code == 0

    @property
    def words(self) -> str:
        """What it said of its failure, on one line."""
        lines = [line.strip() for line in (self.err or self.out).splitlines() if line.strip()]
        return " ".join(lines[:3]) or f"exit code {self.code}"


@dataclass(frozen=True)
class Room:
    """A directory, or the nearest one above it that is there.

    Attributes:
        path: the directory.
        writable: whether the user may make files in it.
        free_kib, free_inodes: None when not known.
        kind: kind of file system as stat(1) names it.
    """

    path: str
    writable: bool
    free_kib: int | None
    free_inodes: int | None
    kind: str


@dataclass(frozen=True)
class Answer:
    """What a login host or a job's node said.

    Attributes:
        facts: frame → key → values.
        complaints: frame → what went to stderr there.
        replies: query → its reply.
        complete: whether the script came to its end.
    """

    facts: Mapping[str, Mapping[str, tuple[str, ...]]] = field(
        default_factory=dict[str, "Mapping[str, tuple[str, ...]]"]
    )
    complaints: Mapping[str, str] = field(default_factory=dict[str, str])
    replies: Mapping[str, Reply] = field(default_factory=dict[str, Reply])
    complete: bool = True

    def fact(self, frame: str, key: str) -> str:
        """The first value of a key; empty when there is none."""
        return next(iter(self.facts.get(frame, {}).get(key, ())), "")

    def all(self, frame: str, key: str) -> tuple[str, ...]:
        """Every value of a key."""
        return self.facts.get(frame, {}).get(key, ())

    def has(self, frame: str) -> bool:
        """Whether the frame is there."""
        return frame in self.facts

    def reply(self, query: str) -> Reply | None:
        """What a command answered; None when it was not asked."""
        return self.replies.get(query)

    @cached_property
    def config(self) -> Mapping[str, str]:
        """`scontrol show config`; empty when it failed."""
        reply = self.reply("config")
        return parse_config(reply.out) if reply and reply.ok else {}

    @cached_property
    def partitions(self) -> tuple[Partition, ...]:
        """The partitions; none when they could not be asked for."""
        partitions, nodes = self.reply("partitions"), self.reply("nodes")
        if not (partitions and partitions.ok):
            return ()
        return parse_partitions(partitions.out, nodes.out if nodes else "")

    @property
    def enroot_places(self) -> Mapping[str, Room]:
        """Enroot's directories by what they are for: RUNTIME, CACHE, DATA, TEMP."""
        rows = self.facts.get("enroot-places", {})
        return {name: room for name, values in rows.items() if (room := parse_room(values[0]))}

    @property
    def credentials(self) -> Credentials:
        """Enroot's registry credentials."""
        rows = self.facts.get("credentials", {})
        lines = [(key, value) for key, values in rows.items() for value in values]
        if not lines:
            return Credentials()
        mode, path = lines[0]
        return Credentials(path, "" if mode == "-" else mode, tuple(lines[1:]))


@dataclass(frozen=True)
class Credentials:
    """A file with registry credentials, without the secrets.

    Attributes:
        path: the file.
        mode: octal mode; empty when there is no file.
        machines: registry host and user of each line.
    """

    path: str = ""
    mode: str = ""
    machines: tuple[tuple[str, str], ...] = ()


def parse_answer(text: str) -> Answer:
    """Read the frames of `doctor.sh` or `deep.sh`; of a query that was asked again the last reply counts."""
    frames = parse_frames(text)
    facts: dict[str, dict[str, tuple[str, ...]]] = {}
    complaints: dict[str, str] = {}
    replies: dict[str, Reply] = {}
    for frame in frames:
        if frame.kind == "query" and len(frame.head) > 2 and frame.head[1].isdecimal():
            replies[frame.head[2]] = Reply(int(frame.head[1]), frame.out, frame.err)
        elif frame.kind == "fact" and len(frame.head) > 1:
            rows = facts.setdefault(frame.head[1], {})
            for line in frame.out.splitlines():
                key, _, value = line.partition(" ")
                rows[key] = (*rows.get(key, ()), value)
            complaints[frame.head[1]] = frame.err.strip()
    return Answer(facts, complaints, replies, is_complete(frames))


def parse_room(text: str) -> Room | None:
    """`<yes|no> <free KiB|-> <free inodes|-> <kind> <path>`; None for anything else. The path may be missing."""
    found = re.fullmatch(r"(yes|no) (\d+|-) (\d+|-) (\S+) ?(.*)", text)
    if not found:
        return None
    numbers = [None if word == "-" else int(word) for word in (found[2], found[3])]
    return Room(found[5], found[1] == "yes", numbers[0], numbers[1], found[4])


def doctor_call(
    root: str, probe: str, role: Role, partition: str, options: Sequence[str], setup: str = "", python: str = ""
) -> Call:
    """Ask a login host for everything in one round trip; read the answer with `parse_answer`.

    Args:
        root: Towline's directory on the shared file system.
        probe: name of a file that tells whether two hosts see the same directory.
        role: what to do with it.
        partition: where a job would go; empty for the site's choice.
        options: sbatch's options that any job would have.
        setup: the profile's shell line.
        python: the Python that is to ask sources of data; empty for the host's own.
    """
    files: dict[str, bytes | Path] = {"setup": f"{setup}\n".encode()} if setup.strip() else {}
    if python:
        files["python"] = python.encode()
    return Call("doctor", script("doctor"), (SINFO_FORMAT, root, probe, role, partition or "-", *options), files)


def deep_call(
    directory: str, seconds: int, name: str, image: str, gpu: str, options: Sequence[str], setup: str = ""
) -> Call:
    """Run a job of a minute and look at what it found; read the answer with `parse_answer`.

    Args:
        directory: made on the shared file system for this, and removed.
        seconds: how long to wait for the job at most.
        name: the job's name.
        image: what to start a container from, in Pyxis' form; empty for no container.
        gpu: sbatch's option that asks for one GPU; empty for none.
        options: sbatch's options that any job would have.
        setup: the profile's shell line.
    """
    files: dict[str, bytes | Path] = {"job": script("deep-job").encode()}
    if setup.strip():
        files["setup"] = f"{setup}\n".encode()
    args = (directory, str(seconds), name, image or "-", gpu or "none", *options)
    return Call("doctor-deep", script("deep"), args, files)


def candidates_call(probe: str, role: Role, setup: str = "") -> Call:
    """Ask where a user's jobs could live; read the answer with `parse_answer` and `candidates`."""
    files: dict[str, bytes | Path] = {"setup": f"{setup}\n".encode()} if setup.strip() else {}
    return Call("candidates", script("candidates"), (probe, role), files)


def candidates(answer: Answer) -> tuple[Room, ...]:
    """The places that can be written, the likeliest first."""
    return tuple(room for text in answer.all("candidates", "place") if (room := parse_room(text)))
