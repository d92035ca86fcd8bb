"""Arrays: from one poll's rows to the state of every task and of the whole. Pure: evidence in, record out.

Slurm shows pending tasks as one row, and `scripts/poll.sh` folds the others by state, so that an answer grows with
what is different among the tasks and not with their number. Details are asked for only where a task failed.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from dataclasses import dataclass

from towline.launch.diagnosis.words import end_of
from towline.models.array import format_tasks
from towline.models.job import MOST_FAILURES, Attempt, JobRecord, JobState, Tasks
from towline.slurm.parse import AccountingRow, QueueRow, SlurmId
from towline.slurm.poll import AttemptFiles, PollAnswer
from towline.slurm.reasons import explain_reason


@dataclass(frozen=True)
class Count:
    """What one poll says of an array.

    Attributes:
        record: the array as it is known now.
        missing: tasks that had not ended when they were last seen, and that neither the queue nor accounting has now.
        stale: tasks that go on as accounting has it, and that the queue does not have; it may have missed their end.
    """

    record: JobRecord
    missing: frozenset[int]
    stale: frozenset[int] = frozenset()


def task_of(record: JobRecord, task: int) -> JobRecord:
    """One task of an array as a job of its own: looked at, logged and cancelled like any other."""
    tasks = record.tasks or Tasks.of("0")
    last = record.last
    known = next((each for each in tasks.failures if each.task == task), None)
    slurm_id = f"{last.slurm_id}_{task}" if last.slurm_id else ""
    attempt = known or Attempt(slurm_id=slurm_id, slurm_cluster=last.slurm_cluster, task=task)
    state = tasks.states().get(task, JobState.UNKNOWN) if slurm_id else record.state
    return dataclasses.replace(record, task=task, tasks=None, state=state, note="", attempts=(attempt,))


def count(record: JobRecord, slurm: SlurmId, answer: PollAnswer, files: AttemptFiles) -> Count:
    """The array after a poll: what a task's row says counts, and what was known of it where it has none."""
    tasks = record.tasks or Tasks.of("0")
    before = tasks.states()
    queue, accounts = answer.task_rows(slurm), answer.task_histories(slurm)
    told = [(numbers, each.newest) for numbers, each in accounts] + list(queue)
    seen = {task: _counted(row.state) for numbers, row in told for task in numbers if task in before}
    now = {**before, **seen}
    missing = frozenset(task for task, state in now.items() if task not in seen and not state.ended)
    going = {task for numbers, each in accounts if not each.newest.state.ended for task in numbers}
    stale = frozenset(going & before.keys()).difference(*(numbers for numbers, _ in queue))
    attempt = dataclasses.replace(record.last, slurm_id=slurm.id, slurm_cluster=slurm.cluster)
    record = dataclasses.replace(record, tasks=tasks.with_states(now), attempts=(attempt,))
    return Count(concluded(record, [row for _, row in told], cancelled=files.cancelled), missing, stale)


def accounted(answer: PollAnswer, slurm: SlurmId) -> bool:
    """Whether accounting told about the array's tasks."""
    query = answer.asked("sacct", slurm)
    return query is not None and query.exit_code == 0


def without_missing(found: Count, files: AttemptFiles) -> Count:
    """The array when the queue still has some of it: a task that was cancelled before it began leaves no row anywhere.

    The queue keeps tasks for MinJobAge after their end (300 s by default), so accounting knows of every task that is
    not there any more and ever began.
    """
    tasks = found.record.tasks or Tasks.of("0")
    states = {**tasks.states(), **dict.fromkeys(found.missing, JobState.CANCELLED)}
    record = dataclasses.replace(found.record, tasks=tasks.with_states(states))
    return Count(concluded(record, (), cancelled=files.cancelled), frozenset())


def to_look_at(record: JobRecord) -> tuple[int, ...]:
    """Failed tasks whose details are not known yet; of very many failures only the first are looked at."""
    if record.tasks is None:
        return ()
    known = {each.task for each in record.tasks.failures}
    failed = sorted(record.tasks.by_state()[JobState.FAILED] - known)
    return tuple(failed[: MOST_FAILURES - len(known)])


def with_looks(record: JobRecord, looks: Iterable[JobRecord], *, cancelled: bool) -> JobRecord:
    """The array with what a closer look at some of its tasks has shown."""
    tasks, found = record.tasks or Tasks.of("0"), list(looks)
    failures = [each.last for each in found if each.state is JobState.FAILED]
    states = {**tasks.states(), **{each.task or 0: _counted(each.state) for each in found}}
    tasks = dataclasses.replace(tasks.with_states(states), failures=(*tasks.failures, *failures)[:MOST_FAILURES])
    return concluded(dataclasses.replace(record, tasks=tasks), (), cancelled=cancelled)


def concluded(record: JobRecord, rows: Iterable[QueueRow | AccountingRow], *, cancelled: bool) -> JobRecord:
    """The whole from its tasks: their state in sum, the code of the first failed task that has one, and a note."""
    tasks, told = record.tasks or Tasks.of("0"), list(rows)
    sets = tasks.by_state()
    state = _whole({each for each, numbers in sets.items() if numbers}, cancelled=cancelled)
    words = [row for row in told if _counted(row.state) is state]
    first = words[0] if words else None
    attempt = record.last
    failures = sorted(tasks.failures, key=lambda each: each.task or 0)
    failure = next((each for each in failures if each.exit_code is not None), Attempt())
    ends = [row.ended for row in told if row.state.ended and row.ended]
    starts = [row.started for row in told if row.state is not JobState.PENDING and row.started]
    attempt = dataclasses.replace(
        attempt,
        slurm_state=first.word if first else attempt.slurm_state,
        reason=_reason(first, attempt, state),
        submitted=min(filter(None, [attempt.submitted, *(row.submitted for row in told)]), default=None),
        started=min(filter(None, [attempt.started, *starts]), default=None),
        ended=max(ends, default=attempt.ended) if state.ended else None,
        exit_code=(0 if state is JobState.SUCCEEDED else failure.exit_code) if state.ended else None,
        exit_source=failure.exit_source,
        failed_rank=failure.failed_rank,
        task=failure.task,
    )
    return dataclasses.replace(record, state=state, attempts=(attempt,), note=_note(sets, state, attempt.reason))


def _reason(row: QueueRow | AccountingRow | None, before: Attempt, state: JobState) -> str:
    """Why the whole waits, or why it was ended; accounting does not tell, so that what the queue told stays."""
    told = row.reason if isinstance(row, QueueRow) else before.reason
    return told if state is JobState.PENDING or (state.ended and end_of(told)) else ""


def _counted(state: JobState) -> JobState:
    """The states that tasks are counted under: a suspended task, and one with a word unknown here, still goes on."""
    return JobState.RUNNING if state in (JobState.SUSPENDED, JobState.UNKNOWN) else state


def _whole(states: set[JobState], *, cancelled: bool) -> JobState:
    order = [JobState.RUNNING, JobState.PENDING, JobState.FAILED, JobState.CANCELLED, JobState.SUCCEEDED]
    if cancelled and JobState.CANCELLED in states:
        order.remove(JobState.FAILED)
    return next((state for state in order if state in states), JobState.SUCCEEDED)


def _note(sets: dict[JobState, frozenset[int]], state: JobState, reason: str) -> str:
    total, ended = sum(map(len, sets.values())), sum(len(numbers) for each, numbers in sets.items() if each.ended)
    failed = sets[JobState.FAILED]
    parts = [f"{ended} of {total} tasks have ended"] if not state.ended else []
    if failed:
        parts.append(f"{len(failed)} of {total} failed ({shortened(failed)})")
    if state is JobState.PENDING and reason:
        explained = explain_reason(reason)
        parts.append(" ".join(filter(None, (explained.sentence, explained.way_out if explained.blocked else ""))))
    if state is JobState.CANCELLED:
        parts.append(end_of(reason))
    return "; ".join(filter(None, parts))


def shortened(numbers: Iterable[int], most: int = 60) -> str:
    """The numbers as ranges, cut where the text gets long."""
    text = format_tasks(numbers)
    return text if len(text) <= most else text[:most].rpartition(",")[0] + ",…"
