"""The one way in which a value becomes shell text."""

from __future__ import annotations

from collections.abc import Iterable


def quote(value: str) -> str:
    """The value as one word of POSIX sh, always in single quotes, so that no shell finds anything to expand.

    Raises:
        ValueError: the value holds a NUL byte, which no shell can carry.
    """
    if "\0" in value:
        raise ValueError("a value with a NUL byte cannot be passed on by a shell")
    return "'" + value.replace("'", "'\\''") + "'"


def quote_words(words: Iterable[str]) -> str:
    """The words quoted and separated by blanks."""
    return " ".join(quote(word) for word in words)
