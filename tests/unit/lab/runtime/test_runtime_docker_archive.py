"""Images in the form of `docker save`."""

from __future__ import annotations

import hashlib
import json
import tarfile
from pathlib import Path
from typing import Any

import pytest

from towline.lab.runtime import docker_archive


@pytest.fixture
def archive(tmp_path: Path) -> tarfile.TarFile:
    root = tmp_path / "root"
    (root / "bin").mkdir(parents=True)
    (root / "bin" / "tool").write_text("#!/bin/sh\n")
    (root / "bin" / "sh").symlink_to("tool")
    docker_archive.write(root, tmp_path / "image.tar", "demo:latest", {"PATH": "/bin", "A": "b=c"}, tmp_path)
    return tarfile.open(tmp_path / "image.tar")


def content(archive: tarfile.TarFile, name: str) -> bytes:
    file = archive.extractfile(name)
    assert file is not None
    return file.read()


def parsed(archive: tarfile.TarFile, name: str) -> Any:
    return json.loads(content(archive, name))


def test_the_manifest_names_what_is_there(archive: tarfile.TarFile) -> None:
    with archive:
        (manifest,) = parsed(archive, "manifest.json")
        assert manifest["RepoTags"] == ["demo:latest"]
        assert {manifest["Config"], *manifest["Layers"], "manifest.json"} == set(archive.getnames())


def test_the_layer_is_the_one_the_configuration_tells_of(archive: tarfile.TarFile) -> None:
    with archive:
        digest = hashlib.sha256(content(archive, "layer.tar")).hexdigest()
        assert parsed(archive, "config.json")["rootfs"]["diff_ids"] == [f"sha256:{digest}"]


def test_everything_in_the_layer_is_roots(archive: tarfile.TarFile) -> None:
    with archive, tarfile.open(fileobj=archive.extractfile("layer.tar")) as layer:
        assert {"./bin/tool", "./bin/sh"} <= set(layer.getnames())
        assert {(member.uid, member.gid) for member in layer} == {(0, 0)}


def test_the_environment_is_the_images(archive: tarfile.TarFile) -> None:
    with archive:
        assert parsed(archive, "config.json")["config"]["Env"] == ["PATH=/bin", "A=b=c"]
