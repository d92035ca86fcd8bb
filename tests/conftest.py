"""What holds for all tests."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

if TYPE_CHECKING:
    from xdist.remote import Producer

    from tests.workers import LabApart

# How long one example takes says more about the machine than about the code.
settings.register_profile("towline", deadline=None)
settings.load_profile("towline")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> LabApart:
    """How several workers share the tests (`-n 2`)."""
    from tests.workers import LabApart

    return LabApart(config, log)
