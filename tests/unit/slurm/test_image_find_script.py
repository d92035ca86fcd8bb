"""Which nodes are meant, and how much an image has in its registry."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest

from tests.unit.slurm.stubs import Slurm
from tests.unit.stager.answers import Quiet, served
from towline.container.cache import Found, Nodes, find_call, name_of, parse_found
from towline.models.image import Image

OWN = "sha256:" + "a" * 64
NODES = """\
NodeName=g1 Arch=aarch64 ActiveFeatures=gh,fast Gres=gpu:gh200:4(S:0) Partitions=gpu,all
NodeName=g2 Arch=x86_64 ActiveFeatures=fast Gres=gpu:h100:8 Partitions=gpu
NodeName=c1 Arch=ppc64le ActiveFeatures=(null) Gres=(null) Partitions=cpu
NodeName=down ActiveFeatures=fast Partitions=gpu
"""


def layers(*sizes: int) -> dict[str, object]:
    return {"config": {"size": 5, "digest": "sha256:c"}, "layers": [{"size": each, "digest": "x"} for each in sizes]}


INDEX = {
    "manifests": [
        {"digest": "sha256:" + "b" * 64, "size": 700, "platform": {"architecture": "unknown", "os": "unknown"}},
        {"digest": "sha256:" + "d" * 64, "size": 700, "platform": {"architecture": "amd64", "os": "windows"}},
        {"digest": OWN, "size": 700, "platform": {"architecture": "amd64", "os": "linux"}},
    ]
}
CONTENT = {"one": layers(100, 3 << 30), "many": INDEX, OWN: layers(40, 2)}


class Registry(Quiet, BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        body = json.dumps(CONTENT[self.path.rpartition("/")[2]], indent=3).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


@pytest.fixture
def registry() -> Iterator[str]:
    with served(Registry) as url:
        yield url.removeprefix("http://")


@pytest.fixture
def slurm(tmp_path: Path) -> Slurm:
    made = Slurm(tmp_path)
    (made.bin / "scontrol").write_text(
        f"#!/bin/sh\ncase $* in *'show hostnames'*) echo g1; echo g2 ;; *) cat {tmp_path}/nodes ;; esac\n"
    )
    (tmp_path / "nodes").write_text(NODES)
    return made


def find(slurm: Slurm, where: Path, image: str, nodes: Nodes) -> Found:
    call = find_call(str(where / "cache"), Image.parse(image), nodes, ask=image != "x")
    ran = slurm.run(call, where / "call", ENROOT_ALLOW_HTTP="yes", ENROOT_SQUASH_OPTIONS="-comp zstd")
    return parse_found(ran.out)


@pytest.mark.parametrize(
    ("nodes", "arches"),
    [
        (Nodes(["gpu"]), ("aarch64", "x86_64")),
        (Nodes(["gpu"], features=["gh"]), ("aarch64",)),
        (Nodes(["gpu"], features=["fast", "gh"]), ("aarch64",)),
        (Nodes(["gpu"], gpu="h100"), ("x86_64",)),
        (Nodes(["gpu", "cpu"], outside="g[1-2]"), ("ppc64le",)),
        (Nodes(["gpu", "cpu"], inside="g[1-2]"), ("aarch64", "x86_64")),
    ],
)
def test_architectures_are_those_of_the_nodes_that_a_job_may_get(
    slurm: Slurm, tmp_path: Path, nodes: Nodes, arches: tuple[str, ...]
) -> None:
    assert find(slurm, tmp_path, "x", nodes).arches == arches


@pytest.mark.parametrize(("tag", "size"), [("one", 100 + (3 << 30) + 5), ("many", 47)])
def test_the_registry_tells_how_much_an_image_has(
    slurm: Slurm, tmp_path: Path, registry: str, tag: str, size: int
) -> None:
    found = find(slurm, tmp_path, f"{registry}/x:{tag}", Nodes(["gpu"], gpu="h100"))
    assert found.manifest
    assert found.manifest.sizes == {"x86_64": size}
    assert found.space
    assert found.space.path == str(tmp_path)
    assert found.squash == "-comp zstd"


def test_of_a_digest_the_registry_is_asked_while_the_cache_has_no_file(
    slurm: Slurm, tmp_path: Path, registry: str
) -> None:
    image, nodes = f"{registry}/x@{OWN}", Nodes(["gpu"], gpu="h100")
    missing = find(slurm, tmp_path, image, nodes)
    assert missing.manifest
    assert missing.manifest.sizes == {"x86_64": 47}
    (tmp_path / "cache").mkdir()
    file = tmp_path / "cache" / f"{name_of(Image.parse(image), 'x86_64')}.sqsh"
    file.write_bytes(b"hsqs" + bytes(36) + (96).to_bytes(8, "little") + bytes(48))
    shutil.rmtree(tmp_path / "call")
    kept = find(slurm, tmp_path, image, nodes)
    assert (kept.manifest, len(kept.images)) == (None, 1)
