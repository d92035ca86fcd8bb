"""One attempt as it was meant: how the Slurm room's scripts take it, and what is said while nobody knows its end."""

from __future__ import annotations

import getpass
import os
import socket

from towline.engine.session import Session
from towline.models.ids import attempt_token
from towline.models.job import JobRecord
from towline.slurm.calls import Submission

LOST = "the answer to its submission was lost; it is looked up at every poll, and withdrawn if Slurm never had it"
"""What is said of a job until it is known whether Slurm has it."""


def submission_of(session: Session, record: JobRecord, sbatch: tuple[str, ...] = ()) -> Submission:
    """The newest attempt of a job as the Slurm room's scripts take it."""
    facts = session.store.facts(session.profile.name)
    return Submission(
        root=session.profile.root,
        job_id=record.id,
        attempt=record.last.number,
        token=attempt_token(record.name, record.id, record.last.number),
        sbatch=sbatch,
        intent=record.created,
        message_timeout=facts.message_timeout if facts else 10,
        owner=owner(),
    )


def owner() -> str:
    """Who submits, for the record of a claim."""
    return f"{_user()}@{socket.gethostname()} pid {os.getpid()}"


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a service's container may have no name for its uid
        return str(os.getuid())
