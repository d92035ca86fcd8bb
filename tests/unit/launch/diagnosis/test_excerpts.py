"""How well the rules judge excerpts that were written by somebody who had not seen them."""

from __future__ import annotations

from tests.unit.launch.diagnosis.excerpts import Excerpt, excerpts
from towline.launch.diagnosis.rules import fixed_texts
from towline.launch.diagnosis.verdict import hits_of, judge
from towline.models.diagnosis import Diagnosis

FEWEST = 1943
RIGHT = 0.98


def verdict(excerpt: Excerpt) -> Diagnosis:
    found = judge(excerpt.facts, [hit for name, text in excerpt.logs.items() for hit in hits_of(name, text)])
    return found or Diagnosis("ambiguous")


FOUND = [(excerpt, verdict(excerpt)) for excerpt in excerpts()]


def test_the_class_is_right_in_nineteen_of_twenty() -> None:
    wrong = {
        each.name: f"{each.kind}, not {found.kind} ({found.rule})" for each, found in FOUND if found.kind != each.kind
    }
    assert len(FOUND) >= FEWEST
    assert 1 - len(wrong) / len(FOUND) >= RIGHT, wrong


def test_no_user_error_is_called_worth_a_retry() -> None:
    assert [(each.name, found.rule) for each, found in FOUND if each.kind == "user" and found.retry != "no"] == []


def test_no_node_is_blamed_that_is_not_at_fault() -> None:
    assert [(each.name, found.node) for each, found in FOUND if found.blames and found.node != each.blames] == []


def test_every_line_that_a_rule_knows_has_a_text_that_the_search_looks_for() -> None:
    texts = fixed_texts()
    lines = {hit.text for each in excerpts() for name, text in each.logs.items() for hit in hits_of(name, text)}
    assert [line for line in lines if not any(text in line for text in texts)] == []
