"""The published schema says of each key what the model does."""

from __future__ import annotations

from typing import Any

from towline.models.resources import Resources
from towline.models.schema import job_keys, job_schema
from towline.models.spec import JobSpec


def test_every_key_is_described() -> None:
    assert [key.name for key in job_keys() if not key.meaning] == []


def test_the_schema_has_every_key_and_no_other() -> None:
    schema = job_schema()
    assert set(schema["properties"]) == set(JobSpec.model_fields)
    assert schema["additionalProperties"] is False
    assert set(schema["$defs"]["Resources"]["properties"]) == set(Resources.model_fields)
    tables: list[dict[str, Any]] = list(schema["$defs"].values())
    assert [table["title"] for table in tables if table.get("additionalProperties") is not False] == []
    assert [name for table in tables for name, entry in table["properties"].items() if not entry["description"]] == []


def test_values_may_be_written_as_people_write_them() -> None:
    schema = job_schema()
    time = schema["$defs"]["Resources"]["properties"]["time"]
    assert {"type": "string"} in time["anyOf"][0].get("anyOf", time["anyOf"])
    assert schema["properties"]["env"]["additionalProperties"]["type"] == ["string", "number", "boolean"]
    assert {"type": "string"} in schema["properties"]["partition"]["anyOf"]


def test_the_version_is_one() -> None:
    version = job_schema()["properties"]["version"]
    assert (version["const"], version["default"]) == (1, 1)
