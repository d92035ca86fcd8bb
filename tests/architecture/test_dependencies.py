"""The lock is in step with what pyproject.toml asks for."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
UPDATE = "see CONTRIBUTING.md, Dependencies"


def wanted() -> list[Requirement]:
    loads: Callable[[str], dict[str, Any]] = import_module("tomllib" if sys.version_info >= (3, 11) else "tomli").loads
    project = loads((ROOT / "pyproject.toml").read_text())
    named: list[str] = [*project["project"]["dependencies"], *project["dependency-groups"]["dev"]]
    return [Requirement(text) for text in [*named, *project["build-system"]["requires"]]]


def locked(file: str) -> dict[str, str]:
    """Name → version of what a requirements file pins, for the newest Python where several are."""
    lines = re.findall(r"^([A-Za-z0-9._-]+)==([^\s;]+)", (ROOT / file).read_text(), re.MULTILINE)
    return {canonicalize_name(name): version for name, version in lines}


@pytest.mark.parametrize("requirement", wanted(), ids=str)
def test_what_is_asked_for_is_locked(requirement: Requirement) -> None:
    version = locked("requirements.lock").get(canonicalize_name(requirement.name))
    assert version, f"{requirement} is not in requirements.lock; {UPDATE}"
    assert version in requirement.specifier, f"requirements.lock has {requirement.name} {version}; {UPDATE}"


@pytest.mark.parametrize("file", ["requirements.lock", "requirements-uv.txt"])
def test_every_pin_has_a_hash(file: str) -> None:
    text = re.sub(r"\\\n", " ", (ROOT / file).read_text())
    pins = [line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    assert pins
    assert [line for line in pins if "--hash=sha256:" not in line] == []
