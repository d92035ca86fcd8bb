"""Datasets' roots become keys of a network's specification, and inputs of its job."""

from __future__ import annotations

from pathlib import Path

import pytest

from towline.models.errors import ConfigError, NotFound, SpecError
from towline.tao.datasets import place


@pytest.fixture(autouse=True)
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TOWLINE_CONFIG_DIR", str(tmp_path))
    (tmp_path / "networks").mkdir()
    return tmp_path / "networks"


def test_a_root_has_the_files_that_cosmos_rl_wants() -> None:
    given = {"train": {"epochs": 3}}
    placed = place("cosmos-rl", given, {"train": "lustre:///lustre/sets/a"})
    assert placed.specs == {
        "train": {"epochs": 3},
        "custom": {
            "train_dataset": {"annotation_path": "/lustre/sets/a/annotations.json", "media_path": "/lustre/sets/a"}
        },
    }
    assert placed.inputs == {
        "/lustre/sets/a": "/lustre/sets/a",
        "/lustre/sets/a/annotations.json": "/lustre/sets/a/annotations.json",
    }
    assert given == {"train": {"epochs": 3}}


def test_a_root_elsewhere_is_brought() -> None:
    placed = place("cosmos-rl", {}, {"train": "s3://sets/a"})
    assert placed.specs["custom"]["train_dataset"]["annotation_path"] == "/data/train/annotations.json"
    assert placed.inputs == {"/data/train": "s3://sets/a"}


def test_keys_that_are_given_are_taken_as_they_are() -> None:
    own = {"custom": {"train_dataset": {"annotation_path": "lustre:///sets/mine.json"}}}
    placed = place("cosmos-rl", own, {"train": "/lustre/sets/a"})
    dataset = placed.specs["custom"]["train_dataset"]
    assert dataset == {"annotation_path": "/sets/mine.json", "media_path": "/lustre/sets/a"}
    assert "/sets/mine.json" in placed.inputs


def test_what_is_missing_is_named() -> None:
    with pytest.raises(SpecError) as missing:
        place("cosmos-rl", {"custom": {"train_dataset": {"media_path": "/x"}}}, {})
    assert "needs custom.train_dataset.annotation_path:" in missing.value.why
    assert place("cosmos-rl", {}, {}, needed=()).inputs == {}


@pytest.mark.parametrize("root", ["file:///home/me/set", "./set", "set"])
def test_data_of_this_machine_is_refused_with_the_way_out(root: str) -> None:
    with pytest.raises(SpecError) as refused:
        place("cosmos-rl", {}, {"train": root})
    assert "towline push" in refused.value.why


def test_users_add_their_networks(own: Path) -> None:
    (own / "mine.toml").write_text('[train]\n"dataset.images" = "images"\n')
    placed = place("mine", {}, {"train": "/lustre/a"})
    assert placed.specs == {"dataset": {"images": "/lustre/a/images"}}
    with pytest.raises(NotFound, match="no data file") as unknown:
        place("other", {}, {})
    assert "cosmos-rl, mine" in unknown.value.fix
    (own / "mine.toml").write_text('[train]\n"dataset.images" = "../../etc"\n')
    with pytest.raises(ConfigError, match="does not say"):
        place("mine", {}, {})


def test_a_split_that_the_network_does_not_have_is_refused() -> None:
    with pytest.raises(SpecError) as refused:
        place("cosmos-rl", {}, {"tset": "/lustre/a"})
    assert "there are train, val" in refused.value.why
