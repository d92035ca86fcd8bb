"""Job ids: nine characters that sort by time and are easy to type and say.

Seven characters count thirty-seconds of a second since the start of 2025, two are random. The alphabet is
Crockford's base 32 (no i, l, o, u). The count starts so high that the first character is always a letter: an
id is never taken for a Slurm id.
"""

from __future__ import annotations

import re
import secrets
import time

ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
_EPOCH = 1735689600  # 2025-01-01T00:00:00Z
_FIRST_LETTER = 10 << 30
_ID = re.compile(r"[a-hjkmnp-tv-z][0-9a-hjkmnp-tv-z]{8}")


def new_job_id(now: float | None = None) -> str:
    """A fresh id; `now` is in seconds since 1970 and defaults to the present."""
    ticks = _FIRST_LETTER + int(((time.time() if now is None else now) - _EPOCH) * 32)
    return _base32(ticks, 7) + secrets.choice(ALPHABET) + secrets.choice(ALPHABET)


def is_job_id(text: str) -> bool:
    """Whether the text has the form of a job id."""
    return isinstance(text, str) and _ID.fullmatch(text) is not None  # pyright: ignore[reportUnnecessaryIsInstance]


def attempt_token(name: str, job_id: str, attempt: int) -> str:
    """The Slurm job name of one attempt; it is how a submission whose answer was lost is found again."""
    return f"{name}-{job_id}-a{attempt}"


def _base32(value: int, width: int) -> str:
    digits: list[str] = []
    for _ in range(width):
        value, digit = divmod(value, 32)
        digits.append(ALPHABET[digit])
    return "".join(reversed(digits))
