"""Outputs go away whole, many at a time, and what fails is told."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.runner.shop import Shop, opened
from towline.runner.uploads import upload
from towline.stager.problems import Problem


@pytest.fixture
def shop() -> Iterator[Shop]:
    with opened() as shop:
        yield shop


@pytest.fixture
def made(tmp_path: Path) -> Path:
    folder = tmp_path / "made"
    for name in ("log.txt", "deep/epoch_1.pth", "deep/cache/x.tmp", "tmp/y"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(name)
    (folder / "link").symlink_to("/etc/hostname")
    return folder


@pytest.mark.parametrize(
    ("excludes", "left"),
    [
        ([], set[str]()),
        (["*.tmp"], {"deep/cache/x.tmp"}),
        (["tmp/*", "deep/*"], {"tmp/y", "deep/cache/x.tmp", "deep/epoch_1.pth"}),
    ],
)
def test_a_directory_goes_without_what_is_excluded(shop: Shop, made: Path, excludes: list[str], left: set[str]) -> None:
    names = {"log.txt", "deep/epoch_1.pth", "deep/cache/x.tmp", "tmp/y"} - left
    files, size = upload(str(made), "s3://b/runs/7/", excludes, shop.env)
    assert shop.objects == {f"b/runs/7/{name}": name.encode() for name in names}
    assert (files, size) == (len(names), sum(map(len, names)))


def test_a_file_goes_under_its_name_or_another(shop: Shop, made: Path) -> None:
    upload(str(made / "log.txt"), "s3://b/logs/", [], shop.env)
    upload(str(made / "log.txt"), "s3://b/other", [], shop.env)
    assert set(shop.objects) == {"b/logs/log.txt", "b/other"}


def test_another_directory_gets_the_same(made: Path, tmp_path: Path) -> None:
    upload(str(made), str(tmp_path / "kept"), ["*.tmp", "*/y"], {})
    kept = {str(path.relative_to(tmp_path / "kept")) for path in (tmp_path / "kept").rglob("*") if path.is_file()}
    assert kept == {"log.txt", "deep/epoch_1.pth"}


def test_what_cannot_be_sent_is_told_and_the_rest_goes(shop: Shop, made: Path) -> None:
    shop.refused = {"b/log.txt"}
    with pytest.raises(Problem, match=r"AccessDenied.*\(1 of 4 files were not sent\)") as refused:
        upload(str(made), "s3://b", [], shop.env)
    assert refused.value.kind == "credentials"
    assert len(shop.objects) == 3


def test_when_nothing_can_be_sent_not_everything_is_tried(shop: Shop, tmp_path: Path) -> None:
    for number in range(200):
        (tmp_path / str(number)).touch()
    shop.refused = {f"b/{number}" for number in range(200)}
    with pytest.raises(Problem, match=r"\(200 of 200 files were not sent\)"):
        upload(str(tmp_path), "s3://b", [], shop.env)
    assert shop.puts < 60


@pytest.mark.parametrize("target", ["https://example.org/x", "hf://a/b", "relative"])
def test_where_nothing_can_be_sent_is_told(made: Path, target: str) -> None:
    with pytest.raises(Problem) as refused:
        upload(str(made), target, [], {})
    assert refused.value.kind == "tool"


def test_an_output_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(Problem) as missing:
        upload(str(tmp_path / "nothing"), "s3://b/x", [], {})
    assert missing.value.kind == "not-found"
