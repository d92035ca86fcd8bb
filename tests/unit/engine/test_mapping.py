"""`map`: what becomes of a function, of items, and of what the tasks made."""

from __future__ import annotations

import functools
import json
import math
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.unit.launch.allocation import SHELLS
from towline.engine.gathering import parse_gathered
from towline.engine.mapping import map_spec, program
from towline.launch.files import arguments_file, entrypoint
from towline.models.errors import SpecError
from towline.models.spec import JobSpec
from towline.storage.scripts import script


def rooted(item: dict[str, Any], power: float = 0.5) -> dict[str, Any]:
    import math

    def inner(value: float) -> float:
        return math.pow(value, power)

    return {"root": inner(item["x"]), "items": [f"{key}" for key in sorted(item)]}


def countdown(number: int) -> int:
    return number and countdown(number - 1)


def outside(value: float) -> float:
    return math.sqrt(value)


@functools.lru_cache
def decorated(value: int) -> int:
    return value


NAMELESS: Callable[[object], object] = lambda item: item  # noqa: E731


def run(function: Any, item: object, where: Path) -> Any:
    command = [sys.executable, "-c", program(function), json.dumps(item)]
    subprocess.run(command, check=True, env={**os.environ, "TOWLINE_RESULTS_DIR": str(where)})
    return json.loads((where / "return.json").read_text())


def test_a_function_stands_for_itself(tmp_path: Path) -> None:
    assert run(rooted, {"x": 9, "é": "'\n"}, tmp_path) == {"root": 3.0, "items": ["x", "é"]}
    assert run(countdown, 3, tmp_path) == 0


@pytest.mark.parametrize(
    ("function", "why"),
    [(outside, "math"), (decorated, "def"), (NAMELESS, "def"), (print, "def"), (str.upper, "def")],
)
def test_a_function_that_needs_more_is_refused(function: Any, why: str) -> None:
    with pytest.raises(SpecError) as error:
        program(function)
    assert why in error.value.why


def test_a_function_within_another_must_not_lean_on_it() -> None:
    around = 3

    def leaning(item: int) -> int:
        return item + around

    with pytest.raises(SpecError, match="leaning"):
        program(leaning)


WORDS = [("a b", "", "'", '"'), ("$HOME", "`id`", "\\", "new\nline"), ("é", "*", "-n", ";")]


@pytest.mark.parametrize("shell", SHELLS, ids=" ".join)
@pytest.mark.parametrize("work", [[sys.executable, "-c", "import sys; print(sys.argv[1:])"], None])
def test_words_reach_their_task_byte_for_byte(tmp_path: Path, shell: tuple[str, ...], work: list[str] | None) -> None:
    text = f'{sys.executable} -c "import sys; print(sys.argv[1:])" "$@"'
    spec = map_spec(work or text, WORDS, limit=2)
    assert spec.array == "0-2%2"
    (tmp_path / "script").mkdir()
    (tmp_path / "script" / "arguments").write_text(arguments_file(spec))
    (tmp_path / "script" / "entrypoint").write_text(entrypoint(spec))
    for task, words in enumerate(WORDS):
        environment = {**os.environ, "TOWLINE_JOB_DIR": str(tmp_path), "SLURM_ARRAY_TASK_ID": str(task)}
        command = [*shell, str(tmp_path / "script" / "entrypoint")]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        assert done.stdout == f"{list(words)}\n"


def test_items_are_words_or_lists_of_words() -> None:
    spec = map_spec(["echo"], ["one", ["two", 3], 4.5], name="each")
    assert (spec.arguments, spec.name) == ((("one",), ("two", "3"), ("4.5",)), "each")


@pytest.mark.parametrize(
    "fields",
    [
        {"command": ["x"], "array": "0-2", "arguments": [["a"]]},
        {"command": ["x"], "arguments": [["a\0"]]},
        {"command": ["x"], "arguments": [["a" * (1 << 17)]]},
        {"command": ["x"], "arguments": "abc"},
    ],
)
def test_arguments_that_cannot_be_are_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(SpecError, match="described"):
        JobSpec.build(**fields)


@pytest.mark.parametrize("items", [[], [object()], [float("nan")]])
def test_items_that_cannot_be_are_refused(items: list[object]) -> None:
    with pytest.raises(SpecError):
        map_spec(countdown, items)


def test_what_a_task_wrote_is_gathered_from_its_first_rank_where_ranks_have_logs_of_their_own(tmp_path: Path) -> None:
    made = {
        "results/0/return.json": "[1]",
        "attempts/1/main-1.out": "one\n",
        "attempts/1/main-2.out": "",
        "attempts/2/task-2/ranks/0-n1.out": "two\n",
        "attempts/2/task-2/ranks/1-n1.out": "other\n",
    }
    for name, text in made.items():
        (tmp_path / "job" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "job" / name).write_text(text)
    (tmp_path / "tasks").write_text("0\n1\n2\n3\n")
    command = ["sh", "-c", script("gather"), "gather", str(tmp_path / "job")]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, check=True)
    assert parse_gathered(done.stdout) == {0: [1], 1: "one\n", 2: "two\n"}


def test_nothing_gathered_is_nothing() -> None:
    assert parse_gathered(b"") == {}
    with pytest.raises(ValueError, match="broke off"):
        parse_gathered(b"x" * 600)
