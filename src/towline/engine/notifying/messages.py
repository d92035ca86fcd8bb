"""What an event is in words for somebody who is not at the terminal."""

from __future__ import annotations

from collections.abc import Sequence

from towline.engine.redaction import redacted
from towline.models.event import EventKind, JobEvent
from towline.models.job import JobRecord, JobState
from towline.models.notice import Notice, Occasion, Tone

_MOST = 20
"""Notices that one message holds in full."""
_NAMES = {"exit_code": "exit code", "failed_rank": "rank", "failed_role": "role", "slurm_state": "Slurm says"}


def notice_of(event: JobEvent, record: JobRecord | None = None) -> Notice | None:
    """The event as a notice; None for one that nobody is told of.

    Args:
        event: what happened.
        record: the job as the store has it now; None when it was removed.
    """
    if event.details.get("adopted") is True and event.state is not JobState.PENDING:
        return None  # it was so before
    if event.kind is EventKind.STATE and event.details.get("ended") is True and event.state is not JobState.REFUSED:
        return _ended(event, record)
    if event.kind is EventKind.STATE and event.state is JobState.RUNNING:
        return _notice(event, ("started",), "is running", _said("nodes", event.details.get("nodes")))
    if event.kind is EventKind.ATTEMPT and event.attempt > 1 and event.details.get("before"):
        body = f"The attempt before ended as {event.details['before']}."
        return _notice(event, ("restarted",), f"has begun attempt {event.attempt}", body, tone="warning")
    if event.kind is EventKind.WAITING and event.details.get("blocked") is True:
        body = f"{event.details.get('reason', '')}. {event.details.get('way_out', '')}"
        return _notice(event, ("stuck",), "waits in vain", body, tone="warning")
    return None


def _ended(event: JobEvent, record: JobRecord | None) -> Notice:
    good = event.state is JobState.SUCCEEDED
    facts = [_said(name, event.details.get(key)) for key, name in _NAMES.items()]
    told = record.last.diagnosis if record else None
    lines = ["" if good else ", ".join(filter(None, facts)), event.note]
    lines += [told.means, told.evidence, told.advice] if told else []
    occasions: tuple[Occasion, ...] = ("ended",) if good else ("ended", "failed")
    if event.state is JobState.FAILED:
        lines.append(f"More: towline why {event.job_id}")
    body = "\n".join(filter(None, lines))
    return _notice(event, occasions, str(event.state), body, tone="success" if good else "failure")


def _notice(event: JobEvent, occasions: Sequence[Occasion], did: str, body: str, *, tone: Tone = "info") -> Notice:
    title = redacted(f"{event.job_name} {did} ({event.cluster})")
    text = redacted("\n".join(filter(None, [f"Job {event.job_id} on {event.cluster}", body.strip()])))
    return Notice(frozenset(occasions), title, text, tone)


def _said(name: str, value: object) -> str:
    return "" if value in (None, "") else f"{name} {value}"


def together(titles: Sequence[str], bodies: Sequence[str]) -> tuple[str, str]:
    """Several notices as one message: title and text."""
    if len(titles) == 1:
        return titles[0], bodies[0]
    if len(titles) <= _MOST:
        return f"{len(titles)} notices from Towline", "\n\n".join(
            f"{title}\n{body}" for title, body in zip(titles, bodies, strict=True)
        )
    return f"{len(titles)} notices from Towline", "\n".join(titles)
