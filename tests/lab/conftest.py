"""The lab for tests: brought up when it is down, left as it was found.

With TOWLINE_LAB_PYXIS and TOWLINE_LAB_ENROOT, the paths of a real Pyxis plugin and Enroot, the container tests
(`test_runtime_*.py`) run on these; afterwards the lab has its stand-ins again.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from towline.lab import Lab, RuntimeChoice, namespaces, profile

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(HERE):
            item.add_marker(pytest.mark.lab)


@pytest.fixture(scope="session")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """The lab, up, with its profile in a configuration folder of this test run (TOWLINE_CONFIG_DIR)."""
    the_lab = Lab.default()
    chosen = RuntimeChoice.of(os.environ.get("TOWLINE_LAB_PYXIS"), os.environ.get("TOWLINE_LAB_ENROOT"))
    was_up = str(the_lab.paths.root) in namespaces.all_holders().values()
    had_profile = profile.path().exists()
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("TOWLINE_CONFIG_DIR", str(tmp_path_factory.mktemp("config")))
        the_lab.up(container_runtime=chosen)
        yield the_lab
        profile.forget(the_lab.paths)
    if not was_up:
        the_lab.down()
    elif had_profile or chosen != RuntimeChoice():
        the_lab.up()
