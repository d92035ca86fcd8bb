from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.launch.allocation import SHELLS, Allocation, make_tools


@pytest.fixture(params=SHELLS, ids=lambda shell: shell[0])
def allocation(request: pytest.FixtureRequest, tmp_path: Path) -> Allocation:
    return Allocation(request.param, tmp_path / "job dir", make_tools(tmp_path / "tools", request.param))
