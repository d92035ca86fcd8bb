"""What supervisor and prelude leave in `attempts/<n>/`, and the codes that are theirs and not the command's."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

DUPLICATE = 120
"""Exit code of a batch job whose attempt belongs to another Slurm job; it ran and wrote nothing."""
CANCELLED = 121
"""Exit code of a batch job that found the job cancelled before it started anything."""
NO_CONTAINER = 122
"""Exit code of a task that found itself on the bare node although an image was asked for."""
UNUSABLE = 123
"""Exit code of a batch job that could not use its job directory; nothing was started."""


_ROLE = re.compile(r"[a-z][a-z0-9-]{0,31}")


@dataclass(frozen=True)
class EndRecord:
    """The file `end`: how an attempt ended, as the supervisor saw it.

    Attributes:
        verdict: `done`, `failed`, `stopped` (TERM came from outside, Slurm's record says why) or `cancelled`.
        code: the job's exit code, 0 to 255; 0 exactly when the verdict is `done`.
        rank: the rank whose failure gave the code; None when it was no rank's.
        role: the role that failed first, in a job with roles.
        reason: `exit` (the command's own code), `no-container`, `launch` (no rank ever ran its command),
            `inputs` (one could not be brought), `check` (a node has not the GPUs that were asked for),
            `torn` (some components of a heterogeneous job had been running for long),
            `hung` (no sign of life for as long as the spec says; the code is 124 then),
            `lost` (a rank left no record), `step` (srun failed although every rank succeeded), `stopped`,
            `cancelled`, or empty for `done`; of a role also `not-ready` (its port did not answer in time) and `left`
            (a service ended before the others had).
    """

    verdict: str
    code: int
    rank: int | None = None
    reason: str = ""
    role: str = ""


def parse_end(text: str) -> EndRecord | None:
    """Read `end`; None when it is not whole or makes no sense (the job itself can write there)."""
    return end_record(parse_fields(text))


def end_record(fields: Mapping[str, str]) -> EndRecord | None:
    """The same from the fields of `end`."""
    code = _small_number(fields.get("code", ""))
    verdict = fields.get("verdict", "")
    if code is None or not verdict or (verdict == "done") != (code == 0):
        return None
    rank = fields.get("rank", "")
    role = fields.get("role", "")
    return EndRecord(
        verdict,
        code,
        int(rank) if _is_number(rank) else None,
        fields.get("reason", ""),
        role if _ROLE.fullmatch(role) else "",
    )


def parse_exit(text: str) -> tuple[int, str] | None:
    """Read `exit/<rank>`: the code and `self`, `signal` or `unstarted`, which the node follows; None for nonsense."""
    words = text.split()
    code, kind = (words[0], words[1]) if len(words) > 1 else ("", "")
    number = _small_number(code)
    return None if number is None or kind not in ("self", "signal", "unstarted") else (number, kind)


BY_CANCEL = "it was cancelled"
"""`why` of a decision against a next attempt that would have come but for the cancel; `scripts/heal.sh` writes it."""


@dataclass(frozen=True)
class Decision:
    """The file `decision`: what the end of an attempt means, written before anything is done about it.

    Attributes:
        cause: `done`, `cancelled`, `stopped` (TERM came from outside, and Slurm's record says why), or a class of
            failures: `user`, `node`, `infrastructure`, `time`, `memory`, `preempted`, `ambiguous` …
        next: whether there shall be a next attempt.
        why: why there is none, for a person; empty when that needs no word.
        nodes: nodes that were found bad, comma-separated.
        progress: whether the newest checkpoint is newer than the attempt's start; None when nobody can tell.
        evidence: the line that shows the cause.
    """

    cause: str
    next: bool = False
    why: str = ""
    nodes: str = ""
    progress: bool | None = None
    evidence: str = ""


_CAUSE = re.compile(r"[a-z][a-z-]{0,31}")
_NODES = re.compile(r"[A-Za-z0-9._,\[\]-]*")


def decision_record(fields: Mapping[str, str]) -> Decision | None:
    """Read the fields of `decision`; None when it is not whole or makes no sense (the job itself can write there)."""
    cause, nodes = fields.get("class", ""), fields.get("nodes", "")
    if not _CAUSE.fullmatch(cause) or fields.get("next") not in ("yes", "no") or not _NODES.fullmatch(nodes):
        return None
    return Decision(
        cause,
        fields["next"] == "yes",
        _printable(fields.get("why", "")),
        nodes,
        {"yes": True, "no": False}.get(fields.get("progress", "")),
        _printable(fields.get("evidence", "")),
    )


def _printable(text: str) -> str:
    return "".join(char if char.isprintable() else " " for char in text)


def parse_fields(text: str) -> dict[str, str]:
    """The `key=value` lines of `start` and `end`; other lines are passed over."""
    pairs = (line.partition("=") for line in text.split("\n"))
    return {key: value for key, mark, value in pairs if mark and key.isidentifier()}


def _small_number(text: str) -> int | None:
    return int(text) if _is_number(text) and int(text) <= 255 else None


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 10
