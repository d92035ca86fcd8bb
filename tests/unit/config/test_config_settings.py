from __future__ import annotations

from pathlib import Path

from towline.config.settings import reference, settings

DOCS = Path(__file__).parents[3] / "docs" / "configuration.md"


def test_every_setting_has_a_help_sentence_and_a_variable() -> None:
    for setting in settings():
        assert setting.help.endswith("."), setting.name
        assert setting.env == f"TOWLINE_{setting.name.upper()}"


def test_the_documentation_has_the_table_of_settings() -> None:
    assert reference() in DOCS.read_text()
