"""A job that names its network and the roots of datasets: which files it finds, and what its specification says."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from towline.config.specs import read_specs, specs_text
from towline.engine.data.preparing import missing_parts
from towline.engine.planning.datasets import dataset_checks, place_datasets, specs_file
from towline.models.errors import ConfigError, SpecError
from towline.models.spec import JobSpec
from towline.storage.remote import Found, problem_of

KEY = "custom.train_dataset.annotation_path"


def spec(specs: Path | None = None, **datasets: str) -> JobSpec:
    network = {"name": "cosmos-rl", "datasets": datasets, "specs": str(specs) if specs else None}
    return JobSpec.build(command=("train",), network=network)


def test_the_filled_specification_is_a_file_of_the_job(tmp_path: Path) -> None:
    own = tmp_path / "config.toml"
    own.write_text('[train]\nepoch = 3\nlr = 1e-5\n[[train.stage]]\nname = "a\\"b"\n')
    planned, placed = place_datasets(spec(own, train="s3://sets/a", val="lustre:///sets/b"))
    assert placed is not None
    assert planned.inputs["/data/train"] == "s3://sets/a"
    assert placed.parts == ("s3://sets/a/annotations.json",)
    ((name, content),) = specs_file(planned, placed, {"/data/train": "/data/train"}).items()
    assert name == "script/specs.toml"
    (tmp_path / "again.toml").write_bytes(content)
    again = read_specs(tmp_path / "again.toml")
    assert again["train"] == {"epoch": 3, "lr": 1e-5, "stage": [{"name": 'a"b'}]}
    assert again["custom"]["train_dataset"]["annotation_path"] == "/data/train/annotations.json"
    assert again["custom"]["val_dataset"]["media_path"] == "/sets/b"


def test_without_an_image_its_keys_name_the_copy() -> None:
    planned, placed = place_datasets(spec(train="s3://sets/a"))
    located = {"/data/train": "/lustre/me/staged/x/data"}
    (content,) = specs_file(planned, placed, located).values()
    assert b'"/lustre/me/staged/x/data/annotations.json"' in content
    (check,) = dataset_checks(placed, located)
    assert f"{KEY} = /lustre/me/staged/x/data/annotations.json" in check.evidence


def test_a_spec_that_was_planned_can_be_planned_again() -> None:
    once, _ = place_datasets(spec(train="s3://sets/a"))
    assert place_datasets(once)[0] == once


def test_an_input_in_the_place_of_a_dataset_is_told() -> None:
    clash = spec(train="s3://sets/a").model_copy(update={"inputs": {"/data/train": "s3://other"}})
    with pytest.raises(SpecError) as told:
        place_datasets(clash)
    assert "/data/train is the place of s3://sets/a and of the input s3://other" in told.value.why


def test_without_roots_and_keys_what_is_missing_is_named() -> None:
    with pytest.raises(SpecError) as told:
        place_datasets(spec())
    assert f"needs {KEY}, custom.train_dataset.media_path" in told.value.why


def test_a_file_that_a_root_elsewhere_lacks_is_named() -> None:
    uri = "s3://sets/a/annotations.json"
    (check,) = missing_parts({uri: Found(1, problem=problem_of("not-found", "there is no such object", uri))}, [uri])
    assert check.evidence == f"{uri}: there is no such object"
    assert missing_parts({uri: Found(1, problem=problem_of("network", "no answer", uri))}, [uri]) == ()


@pytest.mark.parametrize("text", ["- a\n", "a: [\n", "just text\n"])
def test_a_file_that_is_no_specification_is_told(tmp_path: Path, text: str) -> None:
    (tmp_path / "specs.yaml").write_text(text)
    with pytest.raises(ConfigError, match=r"specs\.yaml"):
        read_specs(tmp_path / "specs.yaml")


def test_a_specification_in_yaml_stays_one(tmp_path: Path) -> None:
    (tmp_path / "specs.yaml").write_text("a: 1\nb: null\nc: no\nd: {e: [1.5]}\n")
    found = read_specs(tmp_path / "specs.yaml")
    assert json.loads(specs_text(found, ".yaml")) == {"a": 1, "b": None, "c": False, "d": {"e": [1.5]}}


@pytest.mark.parametrize("name", ["", "../x", "a b", "-x"])
def test_a_network_is_a_name(name: str) -> None:
    with pytest.raises(SpecError, match=r"described") as told:
        JobSpec.build(command=("true",), network={"name": name})
    assert "network.name" in told.value.why
