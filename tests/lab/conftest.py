"""The lab for tests: brought up when it is down, left as it was found, and as new after a test that failed.

With TOWLINE_LAB_PYXIS and TOWLINE_LAB_ENROOT, the paths of a real Pyxis plugin and Enroot, the container tests
(`test_runtime_*.py`) run on these; afterwards the lab has its stand-ins again.
"""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest

from tests.lab.tao_jobs import variables_of
from towline.lab import Lab, RuntimeChoice, namespaces, profile
from towline.tao.platforms.slurm import SlurmSDK

HERE = Path(__file__).parent
FAILED = pytest.StashKey[bool]()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(HERE):
            item.add_marker(pytest.mark.lab)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    item.stash[FAILED] = report.failed or (call.when != "setup" and item.stash.get(FAILED, False))
    return report


@pytest.fixture(autouse=True, scope="module")
def as_new(lab: Lab) -> None:
    """Each file of tests begins without faults and jobs."""
    lab.reset()


@pytest.fixture(autouse=True)
def a_failure_stays_alone(lab: Lab, request: pytest.FixtureRequest) -> Iterator[None]:
    """Takes away what a test that failed has left: its faults and its jobs would make the next ones fail, too."""
    yield
    if request.node.stash.get(FAILED, False):
        lab.reset()


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


@pytest.fixture
def tao_variables(lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """The environment of a script for TAO's SDK, and no other settings of Towline's."""
    values = variables_of(lab, tmp_path)
    for name, value in values.items():
        monkeypatch.setenv(name, value)
    return values


@pytest.fixture
def sdk(tao_variables: dict[str, str]) -> Iterator[SlurmSDK]:
    """The SDK, with that environment."""
    with SlurmSDK(poll_interval=1) as made:
        yield made
