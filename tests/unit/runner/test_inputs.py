"""Inputs of a job: where they are, and that each is brought once, whole, or not at all."""

from __future__ import annotations

import io
import json
import os
import tarfile
import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.unit.runner.shop import Shop, opened
from towline.runner import turns
from towline.runner.inputs import Fetching, Wanted, fetch, model_in
from towline.runner.places import in_place, name_of, show_at
from towline.stager import bring
from towline.stager.problems import Problem


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bring, "PAUSE", 0.0)
    monkeypatch.setattr(turns, "_LONG", 0.05)


@pytest.fixture
def shop() -> Iterator[Shop]:
    with opened() as shop:
        yield shop


def have(shop: Shop, folder: Path, wanted: Wanted, *more: Wanted, mount: str = "") -> Path:
    """The path of the first of these inputs."""
    return Path(fetch([wanted, *more], str(folder / "inputs"), shop.env, mount)[wanted.key])


def tree(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def archive(**members: bytes) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as tar:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    return packed.getvalue()


@pytest.mark.parametrize("form", ["{}", "lustre://{}", "slurm:/{}", "file://{}"])
def test_what_is_on_the_file_system_is_used_in_place(tmp_path: Path, form: str) -> None:
    uri = form.format(tmp_path)
    assert fetch([Wanted("a", uri)], str(tmp_path / "inputs"), {}) == {"a": str(tmp_path)}
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(Problem, match="is it mounted") as missing:
        in_place(f"{uri}/nothing")
    assert missing.value.kind == "not-found"


def test_a_name_that_is_no_path_is_left_alone(tmp_path: Path) -> None:
    assert fetch([Wanted("model", "Qwen/Qwen3-0.6B")], str(tmp_path), {}) == {"model": "Qwen/Qwen3-0.6B"}


@pytest.mark.parametrize(
    ("uri", "name"),
    [
        ("s3://b/sets/train.json", "train.json"),
        ("s3://b/sets/", "sets"),
        ("s3://b", "b"),
        ("https://h/a%20b.bin?sig=x/y", "a_20b.bin"),
        ("s3://b/..", "data"),
        ("s3://b/.towline", "data"),
        ("ngc://nvidia/tao/net:1.0", "net_1.0"),
    ],
)
def test_names_of_copies(uri: str, name: str) -> None:
    assert name_of(uri) == name


def test_a_file_and_a_directory_come_once_under_their_names(shop: Shop, tmp_path: Path) -> None:
    shop.objects = {"b/sets/a.json": b"{}", "b/sets/deep/x": b"x", "b/other": b"o"}
    paths = fetch([Wanted("d[0]", "s3://b/sets"), Wanted("f", "s3://b/sets/a.json")], str(tmp_path), shop.env)
    assert tree(Path(paths["d[0]"])) == {"a.json": b"{}", "deep/x": b"x"}
    assert Path(paths["f"]).name == "a.json"
    before = dict(shop.gets)
    assert fetch([Wanted("again", "s3://b/sets")], str(tmp_path), shop.env) == {"again": paths["d[0]"]}
    assert shop.gets == before


def test_however_many_ask_it_is_brought_once(shop: Shop, tmp_path: Path) -> None:
    shop.objects = {f"b/set/{number}": b"x" * 1000 for number in range(10)}
    shop.open.clear()
    with ThreadPoolExecutor(8) as pool:
        found = [pool.submit(have, shop, tmp_path, Wanted("a", "s3://b/set")) for _ in range(8)]
        threading.Timer(0.3, shop.open.set).start()
        paths = {future.result() for future in found}
    assert len(paths) == 1
    assert set(shop.gets.values()) == {1}
    assert len(tree(paths.pop())) == 10


def test_a_connection_that_breaks_leaves_nothing_and_the_next_start_goes_on(
    shop: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bring, "TRIES", 1)
    content = os.urandom(3000)
    shop.objects, shop.breaks_after = {"b/model.pth": content}, 1000
    with pytest.raises(Problem) as lost:
        have(shop, tmp_path, Wanted("a", "s3://b/model.pth"))
    assert lost.value.kind == "network"
    assert [path for path in tmp_path.rglob("model.pth") if path.is_file()] == []
    shop.breaks_after = 0
    assert have(shop, tmp_path, Wanted("a", "s3://b/model.pth")).read_bytes() == content
    assert list(tmp_path.rglob("work-*")) == []


def test_an_archive_is_its_content(shop: Shop, tmp_path: Path) -> None:
    shop.objects = {"b/images.tar.gz": archive(**{"images/1.png": b"1", "images/2.png": b"2"})}
    found = have(shop, tmp_path, Wanted("a", "s3://b/images.tar.gz"))
    assert (found.name, tree(found)) == ("images", {"1.png": b"1", "2.png": b"2"})
    assert [path.name for path in found.parent.iterdir() if path.name != ".towline"] == ["images"]
    as_it_is = have(shop, tmp_path, Wanted("a", "s3://b/images.tar.gz", settings={"extract": False}))
    assert as_it_is.read_bytes() == shop.objects["b/images.tar.gz"]


def test_an_archive_that_is_refused_leaves_nothing_and_is_not_brought_again(shop: Shop, tmp_path: Path) -> None:
    shop.objects = {"b/evil.tar.gz": archive(**{"first": b"1", "../../../evil": b"x"})}
    for _ in range(2):
        with pytest.raises(Problem, match="leads out of it"):
            have(shop, tmp_path, Wanted("a", "s3://b/evil.tar.gz"))
    assert shop.gets["b/evil.tar.gz"] == 1
    assert not [path for path in tmp_path.rglob("*") if path.name in ("evil", "first")]


@pytest.mark.parametrize("to_parent", [False, True])
def test_archives_in_a_directory_are_extracted(shop: Shop, tmp_path: Path, to_parent: bool) -> None:
    shop.objects = {"b/set/images.tar.gz": archive(x=b"x"), "b/set/labels.json": b"[]"}
    found = have(shop, tmp_path, Wanted("a", "s3://b/set", settings={"extract_to_parent": to_parent}))
    assert set(tree(found)) == {"images.tar.gz", "labels.json", "x" if to_parent else "images/x"}


def test_archives_of_repositories_stay_as_they_are(tmp_path: Path) -> None:
    fetching = Fetching(str(tmp_path), {}, "", print)
    copies = [
        fetching._copy(Wanted("a", uri, settings=settings), ())  # pyright: ignore[reportPrivateUsage]
        for uri, settings in (
            ("hf_dataset://o/shards", {}),
            ("hf_dataset://o/shards", {"extract": True}),
            ("s3://b/x", {}),
        )
    ]
    assert [copy.extract for copy in copies] == [False, True, True]


def selective(**settings: Any) -> Mapping[str, Any]:
    return {"selective": {"annotation": "labels", **settings}}


def test_only_what_an_annotation_names_is_brought(shop: Shop, tmp_path: Path) -> None:
    shop.objects = {f"b/media/{number}/v.mp4": b"%d" % number for number in range(5)}
    shop.objects["b/l.json"] = json.dumps([{"video": "1/v.mp4"}, {"video": "./3/v.mp4"}, {"other": 1}]).encode()
    labels = Wanted("labels", "s3://b/l.json")
    found = have(shop, tmp_path, Wanted("media", "s3://b/media", settings=selective()), labels)
    assert tree(found) == {"1/v.mp4": b"1", "3/v.mp4": b"3"}
    assert not shop.gets["b/media/2/v.mp4"]
    shop.objects["b/l2.json"] = b'[{"video": "2/v.mp4"}]'
    other = have(
        shop, tmp_path, Wanted("media", "s3://b/media", settings=selective()), labels._replace(uri="s3://b/l2.json")
    )
    assert tree(other) == {"2/v.mp4": b"2"}


@pytest.mark.parametrize("reference", ["../secret", "/etc/passwd", "a/../../secret", "s3://b/secret", ".", "a\0b"])
def test_an_annotation_cannot_name_what_is_elsewhere(shop: Shop, tmp_path: Path, reference: str) -> None:
    shop.objects = {"b/media/a": b"", "b/secret": b"s", "b/l.json": json.dumps([{"video": reference}]).encode()}
    with pytest.raises(Problem, match="does not lie below") as refused:
        have(
            shop,
            tmp_path,
            Wanted("media", "s3://b/media", settings=selective()),
            Wanted("labels", "s3://b/l.json"),
        )
    assert refused.value.kind == "names"
    assert not shop.gets["b/secret"]


def test_what_an_annotation_names_and_is_not_there_is_told(shop: Shop, tmp_path: Path) -> None:
    shop.objects = {"b/media/a": b"", "b/l.json": b'{"video": ["a", "b", "c"]}'}
    with pytest.raises(Problem, match="lacks 2 of 3 files that are wanted: b, c"):
        have(shop, tmp_path, Wanted("m", "s3://b/media", settings=selective()), Wanted("labels", "s3://b/l.json"))
    with pytest.raises(Problem, match="is no other input"):
        have(shop, tmp_path, Wanted("m", "s3://b/media", settings=selective()))


def test_a_mount_keeps_what_it_has_for_all_jobs(shop: Shop, tmp_path: Path) -> None:
    mount = tmp_path / "mount"
    (mount / "b" / "mirrored").mkdir(parents=True)
    (mount / "b" / "mirrored" / "x").write_text("own")
    (mount / "b" / "packed.tar.gz").write_bytes(archive(y=b"y"))
    shop.objects = {"b/set/a": b"a", "b/mirrored/x": b"x", "b/packed.tar.gz": b"other"}
    brought = have(shop, tmp_path, Wanted("a", "s3://b/set"), mount=str(mount))
    assert (brought, tree(brought)) == (mount / "b" / "set", {"a": b"a"})
    for job in ("one", "two"):
        assert have(shop, tmp_path / job, Wanted("a", "s3://b/set/"), mount=str(mount)) == mount / "b" / "set"
        assert have(shop, tmp_path / job, Wanted("a", "s3://b/mirrored"), mount=str(mount)) == mount / "b" / "mirrored"
        packed = have(shop, tmp_path / job, Wanted("a", "s3://b/packed.tar.gz"), mount=str(mount))
        assert (packed, tree(packed)) == (mount / "b" / "packed", {"y": b"y"})
    assert shop.gets == {"b/set/a": 1}
    with pytest.raises(Problem, match="cannot be a path below"):
        have(shop, tmp_path, Wanted("a", "s3://b/../../etc"), mount=str(mount))


def test_a_selection_of_what_a_mount_has_in_part_comes_to_the_job_itself(shop: Shop, tmp_path: Path) -> None:
    mount = tmp_path / "mount"
    (mount / "b" / "media").mkdir(parents=True)
    (mount / "b" / "media" / "a").write_text("a")
    shop.objects = {
        "b/media/a": b"a",
        "b/media/b": b"b",
        "b/1.json": b'[{"video": "a"}]',
        "b/2.json": b'[{"video": "b"}]',
    }
    wanted = Wanted("m", "s3://b/media", settings=selective())
    assert have(shop, tmp_path, wanted, Wanted("labels", "s3://b/1.json"), mount=str(mount)) == mount / "b" / "media"
    own = have(shop, tmp_path, wanted, Wanted("labels", "s3://b/2.json"), mount=str(mount))
    assert tmp_path / "inputs" in own.parents
    assert tree(own) == {"b": b"b"}


def test_paths_that_the_job_chooses(shop: Shop, tmp_path: Path) -> None:
    shop.objects = {"b/set/a": b"a", "b/one.bin": b"1", "b/images.tar.gz": archive(x=b"x")}
    (tmp_path / "empty").mkdir()
    seen = {
        "set": Wanted("1", "s3://b/set", target=f"{tmp_path}/new/set"),
        "empty": Wanted("2", "s3://b/set", target=f"{tmp_path}/empty"),
        "file": Wanted("3", "s3://b/one.bin", target=f"{tmp_path}/renamed"),
        "archive": Wanted("4", "s3://b/images.tar.gz", target=f"{tmp_path}/new/pictures.tar.gz"),
        "not one": Wanted("5", "s3://b/images.tar.gz", target=f"{tmp_path}/new/blob"),
        "base": Wanted("d[1]", "s3://b/set", settings={"container_path": f"{tmp_path}/base"}),
        "base of a file": Wanted("f", "s3://b/one.bin", settings={"container_path": f"{tmp_path}/base"}),
    }
    paths = fetch(list(seen.values()), str(tmp_path / "inputs"), shop.env)
    assert fetch(list(seen.values()), str(tmp_path / "inputs"), shop.env) == paths
    for name in ("set", "empty"):
        assert tree(Path(paths[seen[name].key])) == {"a": b"a"}
        assert paths[seen[name].key] == seen[name].target
    assert (tmp_path / "renamed").read_bytes() == b"1"
    assert (tmp_path / "new" / "pictures.tar.gz").read_bytes() == shop.objects["b/images.tar.gz"]
    assert (tmp_path / "new" / "pictures" / "x").read_bytes() == b"x"
    assert (tmp_path / "new" / "blob").read_bytes() == shop.objects["b/images.tar.gz"]
    assert (paths["d[1]"], paths["f"]) == (f"{tmp_path}/base/1", f"{tmp_path}/base/one.bin")


def test_what_is_somebody_elses_at_a_path_stays(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("own")
    (tmp_path / "copy").write_text("brought")
    with pytest.raises(Problem, match="name another path"):
        show_at(f"{tmp_path}/data", f"{tmp_path}/copy")
    assert (tmp_path / "data").read_text() == "own"
    (tmp_path / "old").symlink_to(tmp_path / "gone")
    show_at(f"{tmp_path}/old", f"{tmp_path}/copy")
    assert (tmp_path / "old").read_text() == "brought"


@pytest.mark.parametrize(
    ("names", "found"),
    [
        (["model.pth"], "model.pth"),
        (["experiment.yaml", "deep/net.tlt"], "deep/net.tlt"),
        (["a/b.pth", "z.pth"], "z.pth"),
        (["config.json", "pytorch_model.pt"], ""),
        (["model.safetensors"], ""),
    ],
)
def test_what_stands_for_a_model(tmp_path: Path, names: list[str], found: str) -> None:
    for name in names:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    assert model_in(str(tmp_path)) == str(tmp_path / found).rstrip("/")
