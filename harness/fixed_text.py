"""Texts of which every line that a pattern knows has one: what a search looks for first.

A search for plain texts reads hundreds of megabytes a second, whatever stands there. One for hundreds of patterns at
once takes a new turn with each line that is like no other, and reads less than one.
"""

from __future__ import annotations

import itertools

_MOST = 64
"""Spellings of one text that are followed, as of `[Nn]o [Ss]uch`."""

Needed = frozenset[str]
Spellings = tuple[str, ...]
"""All that a part of a pattern knows; empty when that is too much to follow."""


def fixed_texts(pattern: str) -> Needed:
    """Texts without `|` of which each line has one that the pattern knows; short ones are avoided.

    Args:
        pattern: an extended regular expression as rules have it: no intervals, and escapes of special characters alone.

    Raises:
        ValueError: it knows lines that have no text in common.
    """
    needed, _, at = _choice(pattern, 0)
    if at != len(pattern) or needed is None:
        raise ValueError(f"lines need no text of their own to be known by {pattern!r}")
    return needed


def fewest(texts: Needed) -> Needed:
    """Those in which no other one stands."""
    return frozenset(text for text in texts if not any(other != text and other in text for other in texts))


def _choice(pattern: str, at: int) -> tuple[Needed | None, Spellings, int]:
    """What one of several ways needs, all that they know, and where they end."""
    needs: list[Needed | None] = []
    known: list[Spellings] = []
    while True:
        needed, spellings, at = _way(pattern, at)
        needs.append(needed)
        known.append(spellings)
        if at == len(pattern) or pattern[at] == ")":
            break
        at += 1
    needed_all = frozenset(itertools.chain(*(each for each in needs if each is not None)))
    all_known = tuple(itertools.chain(*known)) if all(known) else ()
    return (needed_all if None not in needs else None), (all_known if len(all_known) <= _MOST else ()), at


def _way(pattern: str, at: int) -> tuple[Needed | None, Spellings, int]:
    found: list[Needed] = []
    run: Spellings = ("",)
    whole = True  # nothing stands before the run that it does not tell
    while at < len(pattern) and pattern[at] not in "|)":
        needed: Needed | None = None
        if pattern[at] in "^$":
            at += 1
            continue
        if pattern[at] == "(":
            needed, spellings, at = _choice(pattern, at + 1)
            at += 1
        else:
            spellings, at = _character(pattern, at)
        times = pattern[at] if at < len(pattern) and pattern[at] in "*+?" else ""
        at += len(times)
        if needed and times in ("", "+"):
            found.append(needed)
        if times == "?" and spellings:
            spellings, times = ("", *spellings), ""
        longer = tuple(before + after for before in run for after in spellings)
        if spellings and not times and len(longer) <= _MOST:
            run = longer
            continue
        found.append(frozenset(longer if spellings and times == "+" and len(longer) <= _MOST else run))
        run, whole = (spellings if times == "+" and spellings else ("",)), False
    found.append(frozenset(run))
    best = max(found, key=_worth)
    return (best if all(best) else None), (run if whole else ()), at


def _character(pattern: str, at: int) -> tuple[Spellings, int]:
    """How the character there may be spelt, if in few ways, and where what says so ends."""
    if pattern[at] == "\\":
        return (() if pattern[at + 1] == "|" else (pattern[at + 1],)), at + 2
    if pattern[at] == "[":
        end = pattern.index("]", at + (3 if pattern[at + 1] == "^" else 2))
        inside = pattern[at + 1 : end]
        few = len(inside) <= 4 and inside[0] != "^" and "|" not in inside and "-" not in inside[1:-1]
        return (tuple(inside) if few else ()), end + 1
    return (() if pattern[at] == "." else (pattern[at],)), at + 1


def _worth(texts: Needed) -> tuple[float, int]:
    """Letters and digits make a text rare, up to some; and few texts are better than many."""
    return min(min(sum(1.0 if each.isalnum() else 0.5 for each in text), 8.0) for text in texts), -len(texts)
