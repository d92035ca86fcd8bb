"""Why an attempt ended: its logs are searched where they are, in one round trip, and the verdict is kept."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence

from towline.engine.outcomes import expect_done
from towline.engine.session import Session
from towline.launch.diagnosis.rules import all_rules, by_name, search_script
from towline.launch.diagnosis.verdict import Facts, Hit, judge, parse_facts
from towline.models.diagnosis import Diagnosis
from towline.models.errors import TowlineError
from towline.models.job import Attempt, JobRecord, JobState, Tasks
from towline.slurm.calls import Budget, WhyTarget, why_call
from towline.slurm.nodes import expand_nodes
from towline.slurm.parse import SlurmId

SECONDS = 60
"""Most time that the logs are searched."""
BYTES = 1 << 29
"""Most bytes of logs that are read, of longer ones the ends and beginnings; 25 MB and more are read a second."""

_EXPLAINED = (JobState.FAILED, JobState.CANCELLED)


async def explain(session: Session, record: JobRecord) -> Diagnosis | None:
    """Why the job ended, or why its attempt before the newest one did; None when there is nothing to explain.

    What was found is kept, and not searched for again.

    Raises:
        Unreachable, WaitTimedOut, OutcomeUnknown, RemoteFault: the logs could not be searched.
    """
    attempt = attempt_to_explain(record)
    if attempt is None or attempt.diagnosis is not None:
        return attempt.diagnosis if attempt else None
    (found,) = await _search(session, record, [attempt])
    if found is not None and record.task is None:
        _keep(session, record, attempt.number, found)
    return found


async def explain_tasks(session: Session, record: JobRecord) -> JobRecord:
    """The array with a diagnosis for each failed task of which more than that is known, in one round trip.

    What was found is kept, and not searched for again.

    Raises:
        Unreachable, WaitTimedOut, OutcomeUnknown, RemoteFault: the logs could not be searched.
    """
    tasks = record.tasks
    wanted = [each for each in tasks.failures if each.diagnosis is None] if tasks else []
    if tasks is None or not wanted:
        return record
    answers = zip(wanted, await _search(session, record, wanted), strict=True)
    found = {each.task: diagnosis for each, diagnosis in answers}
    _keep_of_tasks(session, record, found)
    return dataclasses.replace(record, tasks=_with_found(tasks, found))


async def explained(session: Session, record: JobRecord) -> JobRecord:
    """The job with the diagnosis of its end, as far as that can be had; an array with those of its failed tasks."""
    attempt = attempt_to_explain(record)
    if record.state not in _EXPLAINED or (record.tasks is None and (attempt is None or attempt.diagnosis is not None)):
        return record
    try:
        if record.tasks is not None:
            return await explain_tasks(session, record)
        found = await explain(session, record)
    except (TowlineError, ValueError):  # a help, which must not stand in the way of the end
        return record
    return with_diagnosis(record, attempt.number, found) if found and attempt else record


def attempt_to_explain(record: JobRecord) -> Attempt | None:
    """The newest attempt that has ended and not succeeded; of an array its first failed task's.

    Of a job that has succeeded in the end it is the one before: what it was started again for.
    """
    if record.tasks is not None:
        return min(record.tasks.failures, key=lambda each: each.task or 0, default=None)
    if record.state in _EXPLAINED:
        return record.last if record.last.slurm_id else None
    return record.attempts[-2] if len(record.attempts) > 1 else None


def with_diagnosis(record: JobRecord, number: int, found: Diagnosis) -> JobRecord:
    """The job with an attempt's diagnosis; where nothing was said of its end yet, that is its note, too."""
    attempts = tuple(
        dataclasses.replace(each, diagnosis=found) if each.number == number else each for each in record.attempts
    )
    note = record.note or (found.summary if record.state is JobState.FAILED else "")
    return dataclasses.replace(record, attempts=attempts, note=note)


async def _search(session: Session, record: JobRecord, attempts: Sequence[Attempt]) -> list[Diagnosis | None]:
    """What the logs of these attempts of a job, or of these tasks of an array, say of their ends."""
    targets = [_target(record, each) for each in attempts]
    facts = {f"facts-{number}": facts_of(each).lines().encode() for number, each in enumerate(attempts, 1)}
    files = {**facts, "rules": all_rules(), "search.sh": search_script()}
    call = why_call(record.directory, targets, files, Budget(SECONDS, BYTES), session.profile.setup)
    answer = expect_done(await session.call(call), "searching the logs").decode("utf-8", "replace")
    told: dict[str, list[list[str]]] = {}
    for row in (line.split("\t") for line in answer.splitlines()):
        if row[0] == "target" and len(row) == 2:
            told[row[1]] = []
        elif told:
            next(reversed(told.values())).append(row)
    return [_judged(told.get(str(number), ())) for number in range(1, len(attempts) + 1)]


def _target(record: JobRecord, attempt: Attempt) -> WhyTarget:
    newest = record.tasks is not None or attempt.number == record.last.number
    task = attempt.task if record.task is None else record.task
    slurm = SlurmId(attempt.slurm_id, attempt.slurm_cluster) if attempt.slurm_id and newest else None
    return WhyTarget(attempt.number, task, slurm, _names(task, attempt))


def _judged(rows: Sequence[list[str]]) -> Diagnosis | None:
    facts = parse_facts([row[1] for row in rows if row[0] == "fact" and len(row) == 2])
    return judge(facts, _in_order(rows, _hits(rows)), partial=any(row[0] == "partial" for row in rows))


def facts_of(attempt: Attempt) -> Facts:
    """What is known here already, without its logs."""
    words = (("state", attempt.slurm_state), ("reason", attempt.reason))
    bad = f"bad-nodes={attempt.bad_nodes}" + (f" ({attempt.evidence})" if attempt.evidence else "")
    found_bad = (bad,) if attempt.bad_nodes and attempt.cause == "node" else ()
    # The supervisor saw how the command ended; where no line says more, the diagnosis is what it decided by.
    code = "" if attempt.exit_code is None else f" exit-code={attempt.exit_code}"
    decided = (f"decided={attempt.cause}{code}",) if attempt.cause else ()
    return Facts(
        slurm=tuple(f"{key}={word}" for key, word in words if word and word != "None"),
        end=(*found_bad, *decided),
        nodes=expand_nodes(attempt.nodes),
        rank=attempt.failed_rank,
    )


def _names(task: int | None, attempt: Attempt) -> tuple[str, ...]:
    """Log files and directories of logs in the attempt's directory, those first that say most likely what happened."""
    if task is not None:
        return (f"main-{task}.err", f"main-{task}.out", f"task-{task}")
    own = (f"roles/{attempt.failed_role}",) if attempt.failed_role else ()
    return (*own, "main.err", "main.out", ".")


def _hits(rows: Sequence[list[str]]) -> Iterator[Hit]:
    rules = by_name()
    for row in rows:
        if row[0] == "hit" and len(row) == 5 and row[1] in rules:
            yield Hit(rules[row[1]], row[4], row[2], int(row[3]) if row[3].isdecimal() else None)


def _in_order(rows: Sequence[list[str]], hits: Iterable[Hit]) -> list[Hit]:
    """The lines as they stand in the files, which were not read in that order."""
    files = {row[1]: number for number, row in enumerate(rows) if row[0] == "file" and len(row) == 3}
    return sorted(hits, key=lambda hit: (files.get(hit.file, 0), hit.offset or 0))


def _keep(session: Session, record: JobRecord, number: int, found: Diagnosis) -> None:
    """Write the diagnosis beside the attempt of the job as the store has it."""
    known = session.store.job(record.id)
    if known is None:
        return
    session.store.keep_diagnosis(with_diagnosis(known, number, found), number, found)


def _keep_of_tasks(session: Session, record: JobRecord, found: Mapping[int | None, Diagnosis | None]) -> None:
    """The same for tasks of an array."""
    known = session.store.job(record.id)
    if known is not None and known.tasks is not None:
        session.store.keep_tasks(dataclasses.replace(known, tasks=_with_found(known.tasks, found)))


def _with_found(tasks: Tasks, found: Mapping[int | None, Diagnosis | None]) -> Tasks:
    failures = (dataclasses.replace(each, diagnosis=each.diagnosis or found.get(each.task)) for each in tasks.failures)
    return dataclasses.replace(tasks, failures=tuple(failures))
