"""The rules: each knows its examples and none of its near misses, in Python as in grep."""

from __future__ import annotations

import re
import subprocess

import pytest

from harness.diagnosis import COMPILED, Source, compiled, sources
from harness.fixed_text import fixed_texts
from towline.launch.diagnosis.rules import FIXED_TEXTS, by_name, job_rules, parse_rules, rules
from towline.launch.diagnosis.verdict import rule_of

SOURCES = sources()
IDS = [each.rule.name for each in SOURCES]

# What Python's re and regex(7) read in the same way. Intervals ({2,4}) are left out, for older awks do not know them.
_ATOM = r"\\[.()\[\]|*+?^$\\]|\[\^?\]?[^\]\\]*\]|[^\\\[\]{}]"
_COMMON = re.compile(rf"(?:{_ATOM})*")


def grep(pattern: str, line: str) -> bool:
    found = subprocess.run(
        ["grep", "-E", "-e", pattern],
        input=f"{line}\n",
        text=True,
        capture_output=True,
        env={"LC_ALL": "C"},
        check=False,
    )
    assert found.returncode in (0, 1), found.stderr
    return found.returncode == 0


def test_the_compiled_rules_are_those_of_the_files() -> None:
    assert COMPILED.read_text() == compiled()
    assert len([rule for rule in rules() if rule.kind]) >= 80
    assert len(by_name()) == len(rules())


@pytest.mark.parametrize("source", SOURCES, ids=IDS)
def test_a_rule_is_written_so_that_grep_awk_and_python_read_the_same(source: Source) -> None:
    pattern = source.rule.pattern
    assert _COMMON.fullmatch(pattern), "only escapes and brackets that are the same everywhere"
    assert not re.search(r"\(\?|[*+?][*+?]|\[\[:|\\[0-9a-zA-Z]", pattern)
    assert "\t" not in pattern


@pytest.mark.parametrize("source", SOURCES, ids=IDS)
def test_a_rule_knows_its_examples_in_python_and_in_grep(source: Source) -> None:
    assert source.examples
    for line in source.examples:
        assert source.rule.regex.search(line), line
        assert grep(source.rule.pattern, line), line
        if source.rule.needs:
            continue
        known = rule_of(line, source.rule.where)
        assert known is not None
        assert known.name == source.rule.name, f"{known.name} comes first for {line!r}"


@pytest.mark.parametrize("source", SOURCES, ids=IDS)
def test_a_rule_knows_no_near_miss_in_python_nor_in_grep(source: Source) -> None:
    assert source.near
    for line in source.near:
        assert not source.rule.regex.search(line), line
        assert not grep(source.rule.pattern, line), line


@pytest.mark.parametrize("source", [each for each in SOURCES if each.rule.kind], ids=lambda each: each.rule.name)
def test_a_rule_says_what_happened_and_what_to_do(source: Source) -> None:
    assert source.rule.means.endswith(".")
    assert source.rule.advice.endswith(".")
    if source.rule.kind == "user":
        assert source.rule.retry == "no"


def test_a_job_takes_the_rules_along_without_the_words_for_people() -> None:
    lines = job_rules().decode().splitlines()
    assert [line.split("\t")[0] for line in lines] == [*(rule.name for rule in rules()), FIXED_TEXTS]
    assert len(job_rules()) < 96_000


def test_a_line_that_is_no_rule_is_told() -> None:
    with pytest.raises(ValueError, match="rule x: 'usr'"):
        parse_rules("x\tusr\tlog\tno\tno\town\ta\tb\tc\n")


@pytest.mark.parametrize(
    "source", [each for each in SOURCES if each.rule.where in ("log", "quote")], ids=lambda each: each.rule.name
)
def test_each_line_that_a_rule_knows_has_one_of_its_fixed_texts(source: Source) -> None:
    needed = fixed_texts(source.rule.pattern)
    for line in source.examples:
        assert any(text in line for text in needed), line


@pytest.mark.parametrize(
    ("pattern", "needed"),
    [
        ("No such file", {"No such file"}),
        ("^[Nn]o [Ss]uch$", {"No Such", "No such", "no Such", "no such"}),
        ("a (cat|dog)s? here", {"a cat here", "a cats here", "a dog here", "a dogs here"}),
        ("lost( contact)*: x+y", {"lost"}),
        ("(long words.*|other words)[0-9]+z", {"long words", "other words"}),
        (r"ab\.c[.]d[^x]efghijkl", {"efghijkl"}),
        ("(a|b|.*)c+defg", {"cdefg"}),
        ("long text|[A-Z]+ short", {"long text", " short"}),
    ],
)
def test_fixed_texts(pattern: str, needed: set[str]) -> None:
    assert fixed_texts(pattern) == needed


@pytest.mark.parametrize("pattern", ["[a-z]*", "abc|.*", "(abc)?", "(abc)*[0-9]"])
def test_a_pattern_without_fixed_texts_is_refused(pattern: str) -> None:
    with pytest.raises(ValueError, match="need no text"):
        fixed_texts(pattern)
