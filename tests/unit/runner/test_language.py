"""The runner is read by Pythons that images have."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import towline.runner
from tests.unit.stager.language import too_new


@pytest.mark.parametrize("path", sorted(Path(*towline.runner.__path__).glob("*.py")), ids=lambda path: path.name)
def test_python_3_8_can_read_it(path: Path) -> None:
    ast.parse(path.read_text(), feature_version=(3, 8))
    assert too_new(path.read_text(), (3, 8)) == []
