"""Which files of a local tree stay here: the patterns of ignore files, as git reads them (gitignore(5))."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

IGNORE_FILES = (".gitignore", ".towlineignore")
"""Files of a directory that say what of it is left out; the later one has the last word."""


@dataclass(frozen=True)
class Pattern:
    """One line of an ignore file.

    Attributes:
        regex: matches paths below the tree's root.
        admits: whether it takes back what an earlier line ignored.
        folders: whether it means directories only.
    """

    regex: re.Pattern[str]
    admits: bool = False
    folders: bool = False


def read_patterns(text: str, base: str = "") -> tuple[Pattern, ...]:
    """The patterns of an ignore file.

    Args:
        text: its content.
        base: the directory that it lies in, below the tree's root; empty for the root.
    """
    return tuple(found for line in text.splitlines() if (found := _pattern(line, base)))


def is_ignored(path: str, patterns: Iterable[Pattern], *, folder: bool) -> bool:
    """Whether the last pattern that matches says so; what lies in an ignored directory is not asked for."""
    ignored = False
    for pattern in patterns:
        if (folder or not pattern.folders) and pattern.regex.fullmatch(path):
            ignored = not pattern.admits
    return ignored


def is_covered(path: str, patterns: Sequence[Pattern]) -> bool:
    """Whether the patterns mean a file, or a directory that it is in."""
    parts = path.split("/")
    above = ("/".join(parts[:count]) for count in range(1, len(parts)))
    return any(is_ignored(each, patterns, folder=True) for each in above) or is_ignored(path, patterns, folder=False)


def _pattern(line: str, base: str) -> Pattern | None:
    text = line[: len(line) - 1] if line.endswith("\r") else line
    while text.endswith(" ") and not text.endswith("\\ "):
        text = text[:-1]
    if not text or text.startswith("#"):
        return None
    admits = text.startswith("!")
    text = text.removeprefix("!") if admits else text
    folders = text.endswith("/")
    text = text.removesuffix("/")  # of one slash; git matches nothing with what has more
    if not text:
        return None
    anchored = "/" in text
    inside = re.escape(f"{base}/") if base else ""
    anywhere = "" if anchored else "(?:.*/)?"
    try:
        return Pattern(re.compile(inside + anywhere + _translated(text.removeprefix("/")), re.DOTALL), admits, folders)
    except re.error:  # git, too, matches nothing with a pattern that is none
        return None


_WORDS = re.compile(r"(?P<any>\A\*\*/|/\*\*/)|(?P<below>/\*\*\Z)|(?P<star>\*+)|(?P<one>\?)|\[(?P<set>[!^]?\]?[^]]*)\]")


def _translated(text: str) -> str:
    """A glob of git as a regular expression."""
    done, at = "", 0
    while at < len(text):
        if text[at] == "\\" and at + 1 < len(text):
            done, at = done + re.escape(text[at + 1]), at + 2
            continue
        found = _WORDS.match(text, at)
        if not found:
            done, at = done + re.escape(text[at]), at + 1
            continue
        done, at = done + _word(found), found.end()
    return done


def _word(found: re.Match[str]) -> str:
    if found["any"]:
        return "/(?:.*/)?" if found["any"].startswith("/") else "(?:.*/)?"
    if found["below"]:
        return "/.+"
    if found["star"]:
        return "[^/]*"
    if found["one"]:
        return "[^/]"
    inside = found["set"]
    negated = inside[:1] in ("!", "^")
    body = re.sub(r"([\\\[\]^&~|])", r"\\\1", inside[1:] if negated else inside)
    return f"(?!/)[{'^' if negated else ''}{body}]"
