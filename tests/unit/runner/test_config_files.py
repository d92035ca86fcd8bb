"""Every format gives back what was written, to readers that know nothing of the writer."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from towline.runner.config_files import text_of

READERS: dict[str, Callable[[str], Any]] = {
    "json": json.loads,
    "yaml": yaml.safe_load,
    # The standard library has the reader from Python 3.11 on; tomli is the same one for 3.10.
    "toml": import_module("tomllib" if sys.version_info >= (3, 11) else "tomli").loads,
}
ODD = ["no", "1e5", "~", "{x}", "'\"\n\t #: -", "", "\x85\u2028\x7f\ufeff", "\U0001f600", "[a]", "null"]

texts = st.sampled_from(ODD) | st.text(st.characters(exclude_categories=["Cs"]), max_size=5)
numbers = st.integers(-(1 << 63), (1 << 63) - 1) | st.floats(allow_nan=False, allow_infinity=False)
values = st.recursive(
    texts | st.booleans() | numbers,
    lambda some: st.lists(some, max_size=3) | st.dictionaries(texts, some, max_size=3),
    max_leaves=8,
)
tables = st.dictionaries(texts, values, max_size=4)


@pytest.mark.parametrize("kind", READERS)
@given(written=tables)
@settings(max_examples=60, deadline=None)
def test_what_was_written_is_read(kind: str, written: dict[str, Any]) -> None:
    assert READERS[kind](text_of(written, kind)) == written


@pytest.mark.parametrize("kind", ["json", "yaml"])
def test_nothing_is_something(kind: str) -> None:
    assert READERS[kind](text_of({"a": None, "b": [None]}, kind)) == {"a": None, "b": [None]}


@pytest.mark.parametrize(
    ("values", "place"),
    [
        ({"a": {"b": None}}, "a.b: TOML cannot hold a value that is None"),
        ({"a": [1, None]}, r"a\[1\]: TOML cannot hold"),
        ({"a": [{"x": None}, 1]}, r"a\[0\].x: TOML cannot hold"),
        ({"n": 1 << 63}, "n: .* 64 bits"),
        ({"n": "\ud800"}, "no file of TOML"),
    ],
)
def test_what_toml_cannot_hold_is_named(values: dict[str, Any], place: str) -> None:
    with pytest.raises(ValueError, match=place):
        text_of(values, "toml")


def test_people_can_read_it() -> None:
    specs = {"train": {"lr": 1e-05, "steps": [1, 2]}, "data": [{"path": "/a"}, {"path": "/b"}], "empty": {}}
    assert text_of(specs, "yaml") == (
        "train:\n  lr: 1.0e-05\n  steps:\n    - 1\n    - 2\n"
        'data:\n  -\n    path: "/a"\n  -\n    path: "/b"\nempty: {}\n'
    )
    assert text_of(specs, "toml") == (
        '[train]\nlr = 1.0e-05\nsteps = [1, 2]\n\n[[data]]\npath = "/a"\n\n[[data]]\npath = "/b"\n\n[empty]\n'
    )


def test_old_readers_of_toml_get_numbers_of_one_kind() -> None:
    assert text_of({"a": [0, 0.5], "b": [0, True], "c": [1 << 60, 0.5], "d": [1, 2]}, "toml") == (
        "a = [0.0, 0.5]\nb = [0, true]\nc = [1152921504606846976, 0.5]\nd = [1, 2]\n"
    )
