"""Keys of nested values."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from towline.runner.keys import get, key_of, leaves, put, steps_of

names = st.text(st.sampled_from('ab."\\[0] \n'), max_size=4)
values = st.recursive(
    st.integers(0, 9),
    lambda some: st.lists(some, min_size=1, max_size=3) | st.dictionaries(names, some, min_size=1, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(names, values, max_size=3))
@settings(max_examples=60, deadline=None)
def test_every_leaf_can_be_found_and_put_by_its_key(whole: dict[str, Any]) -> None:
    copy: dict[str, Any] = {}
    for key, each in leaves(whole):
        assert get(whole, key) == each
        put(copy, key, each)
    assert copy == whole


@pytest.mark.parametrize(
    ("key", "steps"),
    [
        ("train", ["train"]),
        ("a.b[0][12].c", ["a", "b", 0, 12, "c"]),
        ('loss."a.b"[1]', ["loss", "a.b", 1]),
        ("under_score-dash", ["under_score-dash"]),
    ],
)
def test_a_key_has_steps(key: str, steps: list[str | int]) -> None:
    assert steps_of(key) == steps


@pytest.mark.parametrize("key", ["", ".", "a.", ".a", "a[", "a[x]", "a]b", "[0]", 'a"b'])
def test_what_is_no_key_is_said(key: str) -> None:
    with pytest.raises(ValueError, match="is no key"):
        steps_of(key)


def test_what_is_missing_is_nothing() -> None:
    assert get({"a": [1]}, "a[1]") is None
    assert get({"a": 1}, "a.b") is None
    assert key_of("b", "a") == "a.b"


def test_nothing_is_put_below_a_value() -> None:
    with pytest.raises(ValueError, match=r"a\.b: there is no table for 'b'; 1 stands there"):
        put({"a": 1}, "a.b", 2)
    with pytest.raises(ValueError, match=r"a\[0\]: there is no list"):
        put({"a": {"x": 1}}, "a[0]", 2)
