"""Why an attempt ended: its logs are searched where they are, in one round trip, and the verdict is kept."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator

from towline.engine.outcomes import expect_done
from towline.engine.session import Session
from towline.engine.watching.arrays import task_of
from towline.launch.diagnosis.rules import all_rules, by_name, search_script
from towline.launch.diagnosis.verdict import Facts, Hit, judge, parse_facts
from towline.models.diagnosis import Diagnosis
from towline.models.errors import TowlineError
from towline.models.job import Attempt, JobRecord, JobState
from towline.slurm.calls import WhyTarget, why_call
from towline.slurm.nodes import expand_nodes
from towline.slurm.parse import SlurmId

SECONDS = 60
"""Most time that the logs are searched."""
BYTES = 1 << 29
"""Most bytes of logs that are read, of longer ones the ends and beginnings; grep takes about 150 MB a second."""

_EXPLAINED = (JobState.FAILED, JobState.CANCELLED)


async def explain(session: Session, record: JobRecord) -> Diagnosis | None:
    """Why the job ended, or why its attempt before the newest one did; None when there is nothing to explain.

    Of an array it is the first task's that failed. What was found is kept, and not searched for again.

    Raises:
        Unreachable, WaitTimedOut, OutcomeUnknown, RemoteFault: the logs could not be searched.
    """
    attempt = attempt_to_explain(record)
    if attempt is None:
        return None
    if attempt.diagnosis is None:
        whose = task_of(record, attempt.task or 0) if record.tasks is not None else record
        found = await _search(session, whose, attempt)
        if found is not None and record.task is None and record.tasks is None:
            _keep(session, record, attempt.number, found)
        return found
    return attempt.diagnosis


async def explained(session: Session, record: JobRecord) -> JobRecord:
    """The job with the diagnosis of its end, as far as that can be had."""
    attempt = attempt_to_explain(record)
    if attempt is None or attempt.diagnosis is not None or not record.state.ended or record.tasks is not None:
        return record
    try:
        found = await explain(session, record)
    except (TowlineError, ValueError):  # a help, which must not stand in the way of the end
        return record
    return with_diagnosis(record, attempt.number, found) if found else record


def attempt_to_explain(record: JobRecord) -> Attempt | None:
    """The newest attempt that has ended and not succeeded."""
    if record.tasks is not None:
        return min(record.tasks.failures, key=lambda each: each.task or 0, default=None)
    if record.state in _EXPLAINED:
        return record.last if record.last.slurm_id else None
    if record.state.ended or len(record.attempts) < 2:
        return None
    return record.attempts[-2]


def with_diagnosis(record: JobRecord, number: int, found: Diagnosis) -> JobRecord:
    """The job with an attempt's diagnosis; where nothing was said of its end yet, that is its note, too."""
    attempts = tuple(
        dataclasses.replace(each, diagnosis=found) if each.number == number else each for each in record.attempts
    )
    note = record.note or (found.summary if record.state is JobState.FAILED else "")
    return dataclasses.replace(record, attempts=attempts, note=note)


async def _search(session: Session, record: JobRecord, attempt: Attempt) -> Diagnosis | None:
    newest = attempt.number == record.last.number
    target = WhyTarget(
        record.directory,
        attempt.number,
        attempt.task if record.task is None else record.task,
        SlurmId(attempt.slurm_id, attempt.slurm_cluster) if attempt.slurm_id and newest else None,
        _names(record, attempt),
    )
    files = {"facts": _facts(attempt).lines().encode(), "rules": all_rules(), "search.sh": search_script()}
    call = why_call(target, files, SECONDS, BYTES, session.profile.setup)
    answer = expect_done(await session.call(call), "searching the logs").decode("utf-8", "replace")
    rows = [line.split("\t") for line in answer.splitlines()]
    facts = parse_facts([row[1] for row in rows if row[0] == "fact" and len(row) == 2])
    return judge(facts, _in_order(rows, _hits(rows)), partial=any(row[0] == "partial" for row in rows))


def _facts(attempt: Attempt) -> Facts:
    """What is known here already."""
    words = (("state", attempt.slurm_state), ("reason", attempt.reason))
    bad = f"bad-nodes={attempt.bad_nodes}" + (f" ({attempt.evidence})" if attempt.evidence else "")
    return Facts(
        slurm=tuple(f"{key}={word}" for key, word in words if word and word != "None"),
        end=(bad,) if attempt.bad_nodes and attempt.cause == "node" else (),
        nodes=expand_nodes(attempt.nodes),
        rank=attempt.failed_rank,
    )


def _names(record: JobRecord, attempt: Attempt) -> tuple[str, ...]:
    """Log files and directories of logs in the attempt's directory, those first that say most likely what happened."""
    if record.task is not None:
        return (f"main-{record.task}.err", f"main-{record.task}.out", f"task-{record.task}")
    own = (f"roles/{attempt.failed_role}",) if attempt.failed_role else ()
    return (*own, "main.err", "main.out", ".")


def _hits(rows: list[list[str]]) -> Iterator[Hit]:
    rules = by_name()
    for row in rows:
        if row[0] == "hit" and len(row) == 5 and row[1] in rules:
            yield Hit(rules[row[1]], row[4], row[2], int(row[3]) if row[3].isdecimal() else None)


def _in_order(rows: list[list[str]], hits: Iterable[Hit]) -> list[Hit]:
    """The lines as they stand in the files, which were not read in that order."""
    files = {row[1]: number for number, row in enumerate(rows) if row[0] == "file" and len(row) == 3}
    return sorted(hits, key=lambda hit: (files.get(hit.file, 0), hit.offset or 0))


def _keep(session: Session, record: JobRecord, number: int, found: Diagnosis) -> None:
    """Write the diagnosis beside the attempt of the job as the store has it."""
    known = session.store.job(record.id)
    if known is None:
        return
    session.store.keep_diagnosis(with_diagnosis(known, number, found), number, found)
