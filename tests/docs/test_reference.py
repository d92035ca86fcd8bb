"""Tables of the documentation are what the code declares."""

from __future__ import annotations

from collections.abc import Iterator

from tests.docs.pages import ROOT
from towline.config.settings import reference, tao_reference
from towline.models import errors
from towline.models.errors import TowlineError


def test_every_setting_is_listed_as_it_is_declared() -> None:
    page = (ROOT / "docs" / "configuration.md").read_text()
    assert reference() in page
    assert tao_reference() in page


def test_every_error_has_its_row() -> None:
    page = (ROOT / "docs" / "exit-codes.md").read_text()
    missing = [
        row for error in _errors(TowlineError) if (row := f"| {error.exit_status} | `{error.code}` |") not in page
    ]
    assert missing == []
    assert f"| {errors.INTERRUPTED} |" in page


def _errors(base: type[TowlineError]) -> Iterator[type[TowlineError]]:
    yield base
    for error in base.__subclasses__():
        if error.__module__ == errors.__name__:
            yield from _errors(error)
