"""Answers in frames, as `scripts/frames.sh` prints them: `@…` heads, `>` lines of stdout, `!` lines of stderr."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Frame:
    """One part of an answer.

    Attributes:
        head: the words of its head, without the `@`.
        out: what the command wrote, or the content of a file.
        err: what the command wrote on stderr.
    """

    head: tuple[str, ...]
    out: str = ""
    err: str = ""

    @property
    def kind(self) -> str:
        """The head's first word."""
        return self.head[0]


def parse_frames(text: str) -> tuple[Frame, ...]:
    """The frames in order; lines outside of frames are passed over."""
    heads: list[tuple[str, ...]] = []
    bodies: list[tuple[list[str], list[str]]] = []
    for line in text.split("\n"):
        if line.startswith("@") and line[1:].strip():
            heads.append(tuple(line[1:].split()))
            bodies.append(([], []))
        elif heads and line.startswith(">"):
            bodies[-1][0].append(line[1:])
        elif heads and line.startswith("!"):
            bodies[-1][1].append(line[1:])
    return tuple(Frame(head, "\n".join(out), "\n".join(err)) for head, (out, err) in zip(heads, bodies, strict=True))


def is_complete(frames: tuple[Frame, ...]) -> bool:
    """Whether the script came to its end."""
    return bool(frames) and frames[-1].kind == "end"


def plain_id(word: str) -> str:
    """A word of a head, where `-` stands for nothing."""
    return "" if word == "-" else word
