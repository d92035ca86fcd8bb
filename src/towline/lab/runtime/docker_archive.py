"""Writing a root file system as an image of one layer in the form of `docker save`, which skopeo reads."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path

from towline.lab import process

_DEBIAN_ARCH = {"x86_64": "amd64", "aarch64": "arm64"}
_CREATED = "2024-01-01T00:00:00Z"


def write(root: Path, target: Path, reference: str, environment: dict[str, str], work: Path) -> None:
    """Pack `root` into the archive `target` as `reference` (NAME:TAG); `work` is a folder for what comes between."""
    folder = work / "archive"
    folder.mkdir()
    _tar(root, folder / "layer.tar", ["--sort=name", "--owner=0", "--group=0", "--numeric-owner", "."])
    digest = hashlib.sha256((folder / "layer.tar").read_bytes()).hexdigest()
    (folder / "config.json").write_text(json.dumps(_config(digest, environment)))
    manifest = [{"Config": "config.json", "RepoTags": [reference], "Layers": ["layer.tar"]}]
    (folder / "manifest.json").write_text(json.dumps(manifest))
    _tar(folder, target, ["manifest.json", "config.json", "layer.tar"])


def _config(layer: str, environment: dict[str, str]) -> dict[str, object]:
    machine = os.uname().machine
    return {
        "architecture": _DEBIAN_ARCH.get(machine, machine),
        "os": "linux",
        "created": _CREATED,
        "config": {
            "Env": [f"{name}={value}" for name, value in environment.items()],
            "Cmd": ["/bin/sh"],
            "WorkingDir": "/",
        },
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{layer}"]},
        "history": [{"created": _CREATED, "created_by": "the lab"}],
    }


def _tar(folder: Path, target: Path, what: list[str]) -> None:
    process.run(["tar", "-C", str(folder), "-cf", str(target), *what])
