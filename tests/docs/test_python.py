"""The Python examples of the documentation use the public API only. That they run: `tests/lab/test_docs.py`."""

from __future__ import annotations

import ast

import pytest

import towline
from tests.docs.pages import Block, blocks


@pytest.mark.parametrize("block", blocks("python"), ids=str)
def test_examples_use_public_names_only(block: Block) -> None:
    used = [node for node in ast.walk(ast.parse(block.text)) if isinstance(node, ast.ImportFrom)]
    names = [alias.name for node in used if (node.module or "").split(".")[0] == "towline" for alias in node.names]
    assert [name for name in names if name not in towline.__all__] == []
    assert [node.module for node in used if (node.module or "").startswith("towline.")] == []
