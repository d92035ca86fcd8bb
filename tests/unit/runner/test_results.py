"""Where outputs go, by what the platform says."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from towline.runner import results
from towline.runner.peers import Peers
from towline.runner.results import Output, Root, place_outputs, root_of, take_away
from towline.stager.problems import Problem

Uploads = list[tuple[str, str]]


@pytest.fixture
def uploads(monkeypatch: pytest.MonkeyPatch) -> Uploads:
    done: Uploads = []

    def note(source: str, target: str, _excludes: Sequence[str], _env: Mapping[str, str]) -> tuple[int, int]:
        if "refused" in target:
            raise Problem("credentials", "no key")
        done.append((source, target))
        return 1, 10

    monkeypatch.setattr(results, "upload", note)
    return done


@pytest.fixture
def own_disk(monkeypatch: pytest.MonkeyPatch) -> Callable[[Path], None]:
    """Has a directory be the container's own disk, and all else be none."""

    def set_to(folder: Path) -> None:
        def device(path: str) -> int:
            return 1 if path in ("/", "/tmp", "/dev/shm") or Path(path).is_relative_to(folder) else 2

        monkeypatch.setattr(results, "_device", device)

    return set_to


def test_the_root_is_what_the_platform_says(tmp_path: Path) -> None:
    above, own = tmp_path / "results", tmp_path / "jobs" / "7" / "results"
    own.mkdir(parents=True)
    tao = {"TAO_RESULTS_ROOT": f"{above}/", "TAO_JOB_ID": "7"}
    assert root_of(tao, "mine") == Root("mount", f"{above}/7", f"{above}/7", f"{above}/7/inputs"), (
        "the platform knows the job's id"
    )
    assert root_of({"TAO_RESULTS_ROOT": str(above)}, "mine").folder == f"{above}/mine"
    assert root_of({"TOWLINE_RESULTS_DIR": str(own)}, "").folder == str(own)
    assert root_of({**tao, "TOWLINE_JOB_DIR": "/jobs/7"}, "").beside == "/jobs/7/inputs", "inputs are no results"
    hidden = {**tao, "TAO_JOB_ID": "8", "TOWLINE_RESULTS_DIR": str(own)}
    assert root_of(hidden, "").folder == str(own), "where the container does not see the other"
    assert not (above / "8").exists()


def test_without_a_platform_it_is_a_bucket_or_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def made(path: str, exist_ok: bool) -> None:
        assert (path, exist_ok) == ("/results/7", True)

    monkeypatch.setattr(results.os, "makedirs", made)
    assert root_of({"S3_BUCKET_NAME": "b", "TAO_JOB_ID": "7"}, "") == Root(
        "s3", "s3://b/results/7", "/results/7", "/results/7/inputs"
    )
    assert root_of({}, "7") == Root("ephemeral", "", "/results/7", "/results/7/inputs")


def test_a_root_that_cannot_be_made_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(Problem, match="set TAO_RESULTS_ROOT"):
        root_of({"TAO_RESULTS_ROOT": str(tmp_path / "file")}, "7")


@pytest.mark.parametrize("value", [None, "", "output", 3])
def test_a_key_that_names_no_place_gets_one(value: object, tmp_path: Path) -> None:
    specs: dict[str, Any] = {"train": {"results_dir": value}}
    root = Root("mount", str(tmp_path), str(tmp_path), str(tmp_path / "inputs"))
    placed = place_outputs(specs, {"train.results_dir": {}}, root, "")
    path = str(tmp_path / "train_results_dir")
    assert specs == {"train": {"results_dir": path}}
    assert placed == [Output("train_results_dir", path)]
    assert Path(path).is_dir()


def test_places_that_are_named_stay_or_are_taken(tmp_path: Path) -> None:
    specs: dict[str, Any] = {
        "here": f"{tmp_path}/a/b",
        "file": f"lustre://{tmp_path}/c/last.pth",
        "away": "s3://bucket/x/",
        "cached": "s3://bucket/y",
    }
    root = Root("mount", str(tmp_path), str(tmp_path), str(tmp_path / "inputs"))
    placed = place_outputs(specs, {"here": {}, "file": {"type": "file"}, "away": {}}, root, "")
    placed += place_outputs(specs, {"cached": {}}, root, f"{tmp_path}/mount")
    assert placed == [
        Output("here", f"{tmp_path}/a/b"),
        Output("file", f"{tmp_path}/c/last.pth"),
        Output("away", f"{tmp_path}/away", "s3://bucket/x/"),
        Output("cached", f"{tmp_path}/mount/bucket/y", "s3://bucket/y"),
    ]
    assert specs["away"] == f"{tmp_path}/away"
    assert (tmp_path / "c").is_dir()
    assert not (tmp_path / "c/last.pth").exists()


def outputs_in(tmp_path: Path, *targets: str) -> list[Output]:
    made: list[Output] = []
    for number, target in enumerate(targets):
        (tmp_path / f"out{number}").mkdir()
        made.append(Output(f"out{number}", str(tmp_path / f"out{number}"), target))
    return made


def test_what_would_end_with_the_container_is_kept(
    uploads: Uploads, own_disk: Callable[[Path], None], tmp_path: Path
) -> None:
    own_disk(tmp_path)
    outputs = outputs_in(tmp_path, "", "s3://b/x/")
    root = Root("mount", "/lustre/results/7", "/lustre/results/7", str(tmp_path / "inputs"))
    assert take_away(outputs, root, Peers(), (), failed=True)
    assert [target for _, target in uploads] == ["/lustre/results/7/out0", "s3://b/x/"]
    assert take_away(outputs, root, Peers(1, 2, "1"), (), failed=False)
    assert [target for _, target in uploads[2:]] == ["/lustre/results/7/out0/node-1", "s3://b/x/node-1"]


def test_what_nodes_share_is_taken_once(uploads: Uploads, own_disk: Callable[[Path], None], tmp_path: Path) -> None:
    own_disk(tmp_path / "none")
    outputs = outputs_in(tmp_path, "", "s3://b/x")
    root = Root("mount", str(tmp_path), str(tmp_path), str(tmp_path / "inputs"))
    for number in (1, 0):
        assert take_away(outputs, root, Peers(number, 2, "1"), (), failed=False)
    assert uploads == [(str(tmp_path / "out1"), "s3://b/x")]


def test_what_cannot_be_taken_is_said_and_the_rest_is_taken(
    uploads: Uploads, own_disk: Callable[[Path], None], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    own_disk(tmp_path / "none")
    outputs = [*outputs_in(tmp_path, "s3://b/refused", "s3://b/x"), Output("gone", f"{tmp_path}/gone", "s3://b/y")]
    root = Root("mount", str(tmp_path), str(tmp_path), str(tmp_path / "inputs"))
    assert not take_away(outputs, root, Peers(), (), failed=False)
    assert len(uploads) == 1
    said = capsys.readouterr().err
    assert "out0 could not be taken to s3://b/refused: no key" in said
    assert "the output " in said
    assert "gone is not there" in said


def test_what_is_lost_is_said(
    uploads: Uploads, own_disk: Callable[[Path], None], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    own_disk(tmp_path)
    assert take_away(
        outputs_in(tmp_path, ""),
        Root("ephemeral", "", str(tmp_path), str(tmp_path / "inputs")),
        Peers(),
        (),
        failed=False,
    )
    assert uploads == []
    assert "ends with this container: neither TAO_RESULTS_ROOT nor S3_BUCKET_NAME" in capsys.readouterr().err
