"""What is said about a job to a person, in one line each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from towline.cli.output import GREEN, RED, YELLOW, duration
from towline.engine.events import AttemptBegan, Held, LogChoice, LogRewritten
from towline.engine.watching.arrays import shortened
from towline.engine.watching.causes import Cause, causes
from towline.engine.watching.verdict import blocked_for_ever
from towline.models.array import parse_tasks
from towline.models.diagnosis import Diagnosis
from towline.models.event import EventKind, JobEvent
from towline.models.job import Attempt, JobRecord, JobState, Tasks
from towline.models.values import Json

_COLOURS = {
    JobState.SUCCEEDED: GREEN,
    JobState.FAILED: RED,
    JobState.REFUSED: RED,
    JobState.CANCELLED: YELLOW,
}
_MOST_FIGURES = 4
_MOST_CAUSES = 12
_SAYS_NOTHING = ("None", "NonZeroExitCode")
"""Slurm's reasons that tell a reader nothing which the state and the code do not."""


def colour_of(record: JobRecord) -> str:
    """The colour of a job's verdict; empty while it has none."""
    return _COLOURS.get(record.state, "")


def submitted(record: JobRecord) -> str:
    """That a job was submitted, and under which numbers."""
    slurm = f" as Slurm job {record.last.slurm_id}" if record.last.slurm_id else ""
    return f"job {record.reference} ({record.name}) submitted to {record.cluster}{slurm}"


def adopted(record: JobRecord) -> str:
    """That a job is known here from now on."""
    count = len(record.attempts)
    tried = f", {count} attempts" if count > 1 else ""
    return f"job {record.id} ({record.name}) is {record.state}{tried}"


def progress(record: JobRecord) -> str:
    """What the job is doing now."""
    attempt = record.last
    again = f" (attempt {attempt.number})" if attempt.number > 1 else ""
    if record.tasks is not None and record.state is JobState.RUNNING:
        return f"job {record.reference} is running: {counted(record.tasks)}"
    if record.state is JobState.RUNNING:
        return f"job {record.reference} is running{f' on {attempt.nodes}' if attempt.nodes else ''}{again}"
    if record.state is JobState.SUBMITTING:
        return f"job {record.reference} is being submitted{_because(record)}"
    if record.state is JobState.PENDING:
        return f"job {record.reference} is waiting{again}{_because(record)}"
    return f"job {record.reference} is {record.state}{again}{_because(record)}"


def blocked(record: JobRecord) -> str:
    """That the job will never start unless somebody acts, and the way out; empty when it only waits."""
    why = blocked_for_ever(record)
    return f"job {record.reference} will NOT start: {why}" if why else ""


def no_answer(reason: str) -> str:
    """That the cluster is silent, and that following goes on."""
    return f"no answer from the cluster, trying again; the job goes on meanwhile ({' '.join(reason.split())})"


def mark(event: AttemptBegan | LogRewritten) -> str:
    """That the log does not simply go on."""
    if isinstance(event, LogRewritten):
        return f"{event.name} was cut or written anew; it begins again here"
    task = "" if event.task is None else f" of task {event.task}"
    return f"attempt {event.number}{task} begins here"


def no_log(record: JobRecord, choice: LogChoice | None = None) -> str:
    """Why there is no log, of what was chosen."""
    if record.state in (JobState.PENDING, JobState.SUBMITTING):
        return f"job {record.reference} has not started{_because(record)}"
    if record.state.ended and record.last.started is None:
        return f"job {record.reference} never started, so it has no log; {verdict(record)}"
    chosen = _chosen(choice) if choice else ""
    if chosen:
        all_of_it = f"`towline logs {record.reference}` shows all"
        return f"job {record.reference} has no log of {chosen}, or it is empty; {all_of_it}"
    return f"job {record.reference} has written nothing"


def _chosen(choice: LogChoice) -> str:
    parts = (("role", choice.role), ("rank", choice.rank), ("node", choice.node))
    return " and ".join(f"{name} {value}" for name, value in parts if value not in ("", None))


def held(hold: Held) -> str:
    """That the job is not submitted yet, why, and that it will be tried again."""
    return f"job {hold.record.id} is not submitted yet: {hold.reason}; trying again in {duration(max(1, hold.seconds))}"


def verdict(record: JobRecord) -> str:
    """How the job ended."""
    ran = elapsed(record.last)
    after = f" after {ran}" if ran else ""
    if record.state is JobState.SUCCEEDED:
        again = f" in attempt {record.last.number}" if record.last.number > 1 else ""
        return f"job {record.reference} succeeded{after}{again}"
    if record.state is JobState.FAILED:
        return f"job {record.reference} failed{_with_code(record.last)}{after}{_because(record)}"
    if record.state is JobState.CANCELLED:
        because = f": {record.note}" if record.note else ""
        return f"job {record.reference} was cancelled{after if ran != '0s' else ''}{because}"
    return f"job {record.reference} is {record.state}{after}{_because(record)}"


_KINDS = {
    "user": "the command's own error",
    "infrastructure": "a fault of the cluster",
    "node": "a node's fault",
    "time": "out of time",
    "memory": "out of memory",
    "preempted": "preempted",
    "image": "the image",
    "filesystem": "a file system",
    "idle-reaper": "ended for idle GPUs",
    "ambiguous": "not clear",
}
_AGAIN = {
    "yes": "another attempt may succeed",
    "no": "another attempt would end the same way",
    "resume": "another attempt makes sense if it resumes where it was",
}


def ending(record: JobRecord) -> list[str]:
    """How the job ended, and in further lines why, if that is known."""
    if record.tasks is not None:
        return [verdict(record), *tasks_causes(record)]
    found = record.last.diagnosis
    told = record.state is JobState.FAILED or (record.state is JobState.CANCELLED and found and found.kind != "user")
    if found is None or not told:
        return [verdict(record)]
    # The lines say more than the note that was made of them.
    headline = verdict(replace(record, note="") if record.note == found.summary else record)
    return [headline, *(f"  {line}" for line in diagnosis(found) if line)]


def diagnosis(found: Diagnosis) -> list[str]:
    """Why a job ended, in lines: what, the evidence with its place, whether again, and what to do."""
    place = f"{found.file}{f' at byte {found.offset}' if found.offset else ''}" if found.file else ""
    where = ", ".join(filter(None, (found.where, place)))
    again = _AGAIN[found.retry] + (f", without {found.node}" if found.blames and found.node else "")
    return [
        f"{_KINDS[found.kind]}: {found.means}",
        f"{where or 'Slurm'}: {found.evidence}" if found.evidence else "",
        f"{found.advice} ({again})" if found.kind != "ambiguous" or found.retry == "yes" else found.advice,
        "the log is long and was not read whole" if found.partial else "",
    ]


def tasks_causes(record: JobRecord) -> list[str]:
    """Why tasks of an array failed, each cause once with the tasks that it is about; nothing where none failed."""
    told = causes(record)
    lines = [line for cause in told[:_MOST_CAUSES] for line in _cause(record, cause)]
    if (more := len(told) - _MOST_CAUSES) > 0:
        lines.append(f"  and {more} more causes; `towline why {record.reference} --json` has all")
    return lines


def _cause(record: JobRecord, cause: Cause) -> list[str]:
    numbers = sorted(parse_tasks(cause.tasks))
    first, several = numbers[0], len(numbers) > 1
    who = f"{len(numbers)} tasks ({shortened(numbers)})" if several else f"task {first}"
    if cause.diagnosis is None:
        return [f"  {who}: not known why; `towline why {record.reference}_{first}` searches the log"]
    what, evidence, *rest = diagnosis(cause.diagnosis)
    evidence = f"task {first}, {evidence}" if several and evidence else evidence
    return [f"  {who}: {what}", *(f"    {line}" for line in (evidence, *rest) if line)]


def elapsed(attempt: Attempt) -> str:
    """How long an attempt that has ended ran; empty when that is not known."""
    if attempt.started is None or attempt.ended is None:
        return ""
    return duration(attempt.ended - attempt.started)


def tasks_text(tasks: Tasks) -> str:
    """How many of an array's tasks are in each state, and which of them failed or run."""
    return f"{tasks.asked}: {counted(tasks, named=(JobState.RUNNING, JobState.FAILED, JobState.CANCELLED))}"


def counted(tasks: Tasks, named: Sequence[JobState] = (JobState.FAILED,)) -> str:
    """How many of an array's tasks are in each state, and which in those that are to be named."""
    return ", ".join(
        f"{len(numbers)} {state}" + (f" ({shortened(numbers)})" if state in named else "")
        for state, numbers in tasks.by_state().items()
        if numbers
    )


def cause_text(attempt: Attempt) -> str:
    """What a failed attempt's end was put down to, and what shows it; empty when nobody has judged it."""
    if not attempt.cause:
        return ""
    shown = f" ({attempt.evidence})" if attempt.evidence else ""
    return f"cause: {attempt.cause}{shown}"


def exit_text(attempt: Attempt) -> str:
    """An attempt's exit code, with its rank and with a mark when it is Slurm's word only."""
    if attempt.exit_code is None:
        return ""
    task = f", task {attempt.task}" if attempt.task is not None else ""
    rank = f", rank {attempt.failed_rank}" if attempt.failed_rank is not None else ""
    rank = f", role {attempt.failed_role}{rank}" if attempt.failed_role else rank
    source = ", as Slurm has it" if attempt.exit_source == "slurm" else ""
    return f"{attempt.exit_code}{task}{rank}{source}"


def event(happened: JobEvent) -> str:
    """What happened to a job."""
    details = happened.details
    texts = {
        EventKind.CREATED: "created",
        EventKind.STATE: f"{happened.state}{f': {happened.note}' if happened.note else ''}",
        EventKind.WAITING: f"{'BLOCKED' if details.get('blocked') else 'waits'}: {happened.note}",
        EventKind.ATTEMPT: f"attempt {happened.attempt}: Slurm job {details.get('slurm_id') or '-'}",
        EventKind.TASKS: ", ".join(f"{count} {state}" for state, count in details.items() if count),
        EventKind.PROGRESS: _progress_text(details),
    }
    return texts.get(happened.kind) or f"{happened.kind} {happened.note}".strip()


def _progress_text(details: Mapping[str, Json]) -> str:
    steps = [
        f"{name} {details[name]}{f' of {details[total]}' if details.get(total) else ''}"
        for name, total in (("epoch", "epochs"), ("step", "steps"))
        if details.get(name) is not None
    ]
    kpi = details.get("kpi")
    figures = (
        [f"{name} {value:g}" for name, value in kpi.items() if isinstance(value, (int, float))]
        if isinstance(kpi, dict)
        else []
    )
    eta = f"{details['eta']} left" if details.get("eta") else ""
    said = str(details.get("message") or "") if not steps else ""
    return ", ".join(filter(None, [*steps, *figures[:_MOST_FIGURES], eta, said])) or str(details.get("word") or "")


def reported(record: JobRecord) -> str:
    """What the job itself says of how far it is; empty when it says nothing."""
    return _progress_text(record.progress.as_dict()) if record.progress else ""


def _with_code(attempt: Attempt) -> str:
    if text := exit_text(attempt):
        code, comma, rest = text.partition(", ")
        return f" with exit code {code}{f' ({rest})' if comma else ''}"
    return " without an exit code"


def _because(record: JobRecord) -> str:
    reason = "" if record.last.reason in _SAYS_NOTHING else record.last.reason
    note = record.note or reason
    return f": {note}" if note else ""
