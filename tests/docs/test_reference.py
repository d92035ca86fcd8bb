"""Tables of the documentation are what the code declares."""

from __future__ import annotations

from collections.abc import Iterator

from harness.renew import renewed
from tests.docs.pages import ROOT
from towline.models import errors
from towline.models.errors import TowlineError


def test_what_the_code_declares_stands_in_the_documentation() -> None:
    """`.venv/bin/python -m harness.renew` writes these parts anew."""
    old = [path.name for path, text in renewed().items() if not path.is_file() or path.read_text() != text]
    assert old == [], "run .venv/bin/python -m harness.renew"


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
