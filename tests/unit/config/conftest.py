"""A configuration directory of the test's own."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from towline.config.files import load_profile
from towline.config.profile import ClusterProfile


@pytest.fixture
def write(tmp_path: Path) -> Callable[[str, str], Path]:
    """Writes a file of the configuration directory `tmp_path`."""

    def _write(name: str, text: str) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    return _write


@pytest.fixture
def load(tmp_path: Path) -> Callable[..., ClusterProfile]:
    """`load_profile` with nothing in the environment but what the test gives."""

    def _load(name: str | None = None, **env: str) -> ClusterProfile:
        return load_profile(name, env={"TOWLINE_CONFIG_DIR": str(tmp_path), **env})

    return _load
