"""Keeping secrets out of what Towline itself prints and writes: values that this process knows, and known shapes.

Its reach ends there: what a job prints is the job's own, and is passed on unchanged.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, cast

HIDDEN = "***"

_SHORTEST, _SHORTEST_LINE = 6, 16
"""Characters from which on a known value, or a line of one, is hidden; less would hide half of every text."""

_known: set[str] = set()

_TOKENS = (
    r"nvapi-[A-Za-z0-9_-]{40,}",  # NVIDIA
    r"hf_[A-Za-z0-9]{30,}",  # Hugging Face
    r"gh[pousr]_[A-Za-z0-9]{36,}",  # GitHub
    r"github_pat_[A-Za-z0-9_]{60,}",
    r"glpat-[A-Za-z0-9_-]{20,}",  # GitLab
    r"sk-[A-Za-z0-9_-]{32,}",  # OpenAI, Anthropic
    r"xox[abprs]-[A-Za-z0-9-]{20,}",  # Slack
    r"eyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}",  # JSON web tokens
    r"-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)",
)
_SHAPES = re.compile("|".join(f"(?<![A-Za-z0-9_-])(?:{token})" for token in _TOKENS))
_IN_URL = re.compile(r"(?<=://)([^/\s:@]*):[^/\s@]+(?=@)")


def conceal(values: Iterable[str]) -> None:
    """Hide these values in everything that this process says from now on; lines of a longer one also by themselves."""
    for value in values:
        lines = [line for line in value.splitlines() if len(line) >= _SHORTEST_LINE]
        _known.update([value, *lines] if len(value) >= _SHORTEST else lines)


def redacted(text: str) -> str:
    """The text without known values and without what looks like a token, a private key or a password in a URL."""
    for value in sorted(_known, key=len, reverse=True):
        text = text.replace(value, HIDDEN)
    return _IN_URL.sub(rf"\1:{HIDDEN}", _SHAPES.sub(HIDDEN, text))


def redacted_document(value: Any) -> Any:
    """The same for every text in what will be printed as JSON."""
    if isinstance(value, str):
        return redacted(value)
    if isinstance(value, dict):
        return {key: redacted_document(each) for key, each in cast("dict[str, Any]", value).items()}
    if isinstance(value, (list, tuple)):
        return [redacted_document(each) for each in cast("list[Any]", value)]
    return value


def looks_secret(text: str) -> bool:
    """Whether a token or a private key stands in the text."""
    return bool(_SHAPES.search(text))
