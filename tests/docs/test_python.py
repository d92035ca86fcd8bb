"""The Python examples of the documentation use the public API only. That they run: `tests/lab/test_docs.py`."""

from __future__ import annotations

import ast
import importlib
from collections.abc import Collection

import pytest

import towline
from tests.docs.pages import Block, blocks


@pytest.mark.parametrize("block", blocks("python"), ids=str)
def test_examples_use_public_names_only(block: Block) -> None:
    used = [node for node in ast.walk(ast.parse(block.text)) if isinstance(node, ast.ImportFrom)]
    named = [(node.module or "", alias.name) for node in used for alias in node.names]
    names = [(module, name) for module, name in named if module.split(".")[0] == "towline"]
    assert [each for each in names if each[1] not in public_names(each[0])] == []


def public_names(module: str) -> Collection[str]:
    """What may be imported from a module; those of `towline.tao` are public by their contract."""
    if module == "towline":
        return towline.__all__
    return dir(importlib.import_module(module)) if module.startswith("towline.tao.") else ()
