"""The documentation shows every fault of the lab, with arguments that it takes."""

from __future__ import annotations

import shlex

import pytest

from tests.docs.pages import blocks
from towline.lab.faults.registry import FAULTS

LINES = [line for block in blocks("sh") for line in block.text.splitlines() if line.startswith("towline lab fault ")]
EXAMPLES = [words[3:] for line in LINES if (words := shlex.split(line, comments=True))[4:5] == ["on"]]


def test_every_fault_is_shown_and_no_other() -> None:
    assert {name for name, *_ in EXAMPLES} == set(FAULTS)


@pytest.mark.parametrize("words", EXAMPLES, ids=" ".join)
def test_the_arguments_shown_are_taken(words: list[str]) -> None:
    name, _, *arguments = words
    assert len(FAULTS[name].parsed(arguments)) == len(FAULTS[name].arguments)


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_has_one_line_of_help(name: str) -> None:
    assert 10 < len(FAULTS[name].help) < 90
    assert "\n" not in FAULTS[name].help
