"""`map`: one task of an array for each item, and what they made in the order of the items."""

from __future__ import annotations

import builtins
import dis
import inspect
import json
import textwrap
from collections.abc import Callable, Iterable, Sequence
from types import CodeType, FunctionType
from typing import Any, cast

from towline.engine.gathering import parse_gathered, tasks_file
from towline.engine.outcomes import expect_done
from towline.engine.session import Session
from towline.models.errors import NotFound, SpecError, TasksFailed, TransferFailed
from towline.models.job import JobRecord, JobState
from towline.models.spec import JobSpec
from towline.models.values import Json
from towline.remote.base import Operation
from towline.storage.scripts import script

Work = Callable[..., object] | Sequence[str] | str
"""A function, a command, or shell text."""

MOST_BYTES = 1 << 30
"""Bytes of everything that one `gather` brings; more belongs into results and is pulled."""

_CALL = """

def _towline_call():
    import json, os, sys
    value = json.dumps(%s(json.loads(sys.argv[1])))
    if os.environ.get("RANK", "0") == "0":
        path = os.path.join(os.environ["TOWLINE_RESULTS_DIR"], "return.json")
        with open(path + ".part", "w") as file:
            file.write(value)
        os.replace(path + ".part", path)


_towline_call()
"""


def map_spec(work: Work, items: Iterable[object], *, limit: int | None = None, **fields: Any) -> JobSpec:
    """The array that does the work once for each item.

    Args:
        work: a command or shell text, to which each item's words are added (shell text finds them in `$@`); or a
            function, which is called with the item.
        items: for a command, texts or lists of texts; for a function, anything that JSON can hold.
        limit: tasks that run at a time; all that find room when not given.
        fields: further fields of `JobSpec`.

    Raises:
        SpecError: there are no items, an item is of the wrong kind, or the function needs more than its own text.
    """
    things = list(items)
    if not things:
        raise SpecError("there is nothing to map over", fix="Give at least one item.")
    array = f"0-{len(things) - 1}" + (f"%{limit}" if limit is not None else "")
    if callable(work):
        command = ("python3", "-c", program(work))
        name = fields.pop("name", None) or getattr(work, "__name__", "map")
        return JobSpec.build(**fields, name=name, command=command, array=array, arguments=[[_json(x)] for x in things])
    what = {"shell": work} if isinstance(work, str) else {"command": tuple(work)}
    return JobSpec.build(**fields, **what, array=array, arguments=[_words(each) for each in things])


def program(function: Callable[..., object]) -> str:
    """A Python program that calls the function with its one argument, in JSON, and keeps what it returns.

    The function's text is all that goes to the cluster, so it must stand for itself: import inside what it uses.
    That needs no package in the image, and no Python of the same version as here.

    Raises:
        SpecError: its text cannot be had, or it uses names from outside.
    """
    if not isinstance(function, FunctionType) or function.__name__ == "<lambda>":
        raise _unfit(function, "Only a function that is written with `def` can be sent.")
    if outside := sorted(_outside(function.__code__) - {function.__name__}):
        raise _unfit(function, f"It uses {', '.join(outside)} from outside of itself.")
    try:
        text = textwrap.dedent(inspect.getsource(function))
    except (OSError, TypeError) as error:
        raise _unfit(function, f"Its text is in no file ({error}), as with what is typed into Python.") from None
    if not text.startswith("def "):
        raise _unfit(function, "It has a decorator, or is a coroutine.")
    return "from __future__ import annotations\n\n" + text + _CALL % function.__name__


def _outside(code: CodeType) -> set[str]:
    """Names that the code, or a function inside it, takes from its module or from around it."""
    names = {each.argval for each in dis.get_instructions(code) if each.opname in ("LOAD_GLOBAL", "LOAD_NAME")}
    inner = [each for each in code.co_consts if isinstance(each, CodeType)]
    found = {*names, *code.co_freevars}.union(*(_outside(each) - {*code.co_cellvars} for each in inner))
    return {name for name in found if not hasattr(builtins, name)}


def _unfit(function: object, why: str) -> SpecError:
    name = getattr(function, "__name__", repr(function))
    return SpecError(
        f"the function {name} cannot be sent to the cluster",
        why=why,
        fix="Write one that imports inside what it uses and takes one item; or map a command.",
    )


def _json(item: object) -> str:
    try:
        return json.dumps(item, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise SpecError(f"the item {item!r:.80} cannot be written as JSON", why=str(error)) from None


def _words(item: object) -> tuple[object, ...]:
    words = cast("Sequence[object]", item) if isinstance(item, (list, tuple)) else (item,)
    return tuple(str(word) if isinstance(word, (int, float)) else word for word in words)


async def gather(session: Session, record: JobRecord, *, partial: bool) -> list[Json]:
    """What each task of an array that has ended made: what it returned, or what it wrote to stdout.

    Args:
        session: the cluster.
        record: the array.
        partial: give None for tasks that did not succeed instead of an error.

    Raises:
        TasksFailed: some did not succeed.
        TransferFailed: what they made did not arrive whole.
    """
    tasks = record.tasks
    if tasks is None:
        raise NotFound(f"job {record.reference} is no array", fix="Read its log or its results instead.")
    succeeded = tasks.by_state()[JobState.SUCCEEDED]
    if len(succeeded) < len(tasks.numbers) and not partial:
        raise TasksFailed(
            f"{len(tasks.numbers) - len(succeeded)} of {len(tasks.numbers)} tasks of job {record.id} did not succeed",
            why=record.note,
            fix=f"See `towline status {record.id}`, and the log of one with `towline logs {record.id}_N`; "
            "or gather with `partial=True` what the others made.",
        )
    values = await _fetched(session, record, sorted(succeeded))
    if lost := [task for task in succeeded if task not in values]:
        raise TransferFailed(f"nothing is left on the cluster of what task {min(lost)} of job {record.id} made")
    return [values.get(task) for task in sorted(tasks.numbers)]


async def _fetched(session: Session, record: JobRecord, tasks: Sequence[int]) -> dict[int, Json]:
    stream = bytearray()

    def take(data: bytes) -> None:
        stream.extend(data)
        if len(stream) > MOST_BYTES:
            raise ValueError(f"there are more than {MOST_BYTES >> 20} MiB of it")

    operation = Operation("gather", script("gather"), (record.directory,), {"tasks": tasks_file(tasks)}, timeout=None)
    try:
        outcome = await session.run(operation, sink=take)
        expect_done(outcome, "gathering what the tasks made")
        return parse_gathered(bytes(stream))
    except ValueError as error:
        raise TransferFailed(
            f"what the tasks of job {record.id} made could not be read",
            why=str(error),
            fix=f"Bring it home with `towline results {record.id} --pull DIR`, and look at it there.",
        ) from None
