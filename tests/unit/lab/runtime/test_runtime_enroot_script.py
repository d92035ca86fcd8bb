"""What `enroot` refuses before it asks anybody."""

from __future__ import annotations

import subprocess
from importlib import resources
from pathlib import Path

import pytest

ENROOT = str(resources.files("towline.lab.runtime") / "enroot" / "enroot")


def enroot(folder: Path, *argv: str) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(folder)}
    return subprocess.run(
        ["sh", ENROOT, *argv], cwd=folder, env=environment, capture_output=True, text=True, timeout=30, check=False
    )


@pytest.mark.parametrize(
    ("uri", "cause"),
    [
        ("registry.lab:5000#demo:latest", "Invalid argument"),
        ("/lustre/images/x.sqsh", "Invalid argument"),
        ("", "Invalid argument"),
        ("docker://registry.lab:5000#De mo:la!test", "Invalid image reference"),
        ("docker://registry.lab:5000#Demo:latest", "Invalid image reference"),
        ("docker://registry.lab:5000#demo:la!test", "Invalid image reference"),
        ("docker://registry.lab:5000#", "Invalid image reference"),
        ("docker://#demo", "Invalid image reference"),
        ("docker://registry.lab:5000#demo\ndemo", "Invalid image reference"),
        ("docker://", "Invalid image reference"),
    ],
)
def test_what_is_no_image_reference(tmp_path: Path, uri: str, cause: str) -> None:
    done = enroot(tmp_path, "import", uri)
    assert (done.returncode, done.stderr) == (1, f"[ERROR] {cause}: {uri}\n")


@pytest.mark.parametrize(
    ("uri", "file"),
    [
        ("docker://registry.lab:5000#demo", "demo+latest.sqsh"),
        ("docker://registry.lab:5000#team/demo:v1", "team+demo+v1.sqsh"),
        ("docker://registry.lab/team/demo:v1", "team+demo+v1.sqsh"),
        ("docker://me@registry.lab#demo:v1", "demo+v1.sqsh"),
        ("docker://debian:12", "debian+12.sqsh"),
        ("docker://debian", "debian+latest.sqsh"),
        ("docker://team/demo", "team+demo+latest.sqsh"),
    ],
)
def test_the_output_is_named_after_the_image(tmp_path: Path, uri: str, file: str) -> None:
    (tmp_path / file).touch()
    assert enroot(tmp_path, "import", uri).stderr == f"[ERROR] File already exists: {tmp_path / file}\n"


@pytest.mark.parametrize("argv", [[], ["import"], ["import", "-o"], ["import", "--bogus", "x"], ["bogus"]])
def test_wrong_usage_shows_the_right_one(tmp_path: Path, argv: list[str]) -> None:
    done = enroot(tmp_path, *argv)
    assert done.returncode == 1
    assert done.stdout.startswith("Usage: enroot")


def test_an_architecture_that_is_unknown(tmp_path: Path) -> None:
    done = enroot(tmp_path, "import", "--arch", "mips", "docker://demo")
    assert (done.returncode, done.stderr) == (1, "[ERROR] Unsupported architecture: mips\n")


def test_no_containers_are_listed_as_nothing(tmp_path: Path) -> None:
    done = enroot(tmp_path, "list")
    assert (done.returncode, done.stdout) == (0, "")
