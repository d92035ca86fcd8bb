"""Faults of the registries, as an import meets them."""

from __future__ import annotations

import time

import pytest

from tests.lab.faulty import fault, try_as_alice
from towline.lab import Lab
from towline.lab.layout import CTL, OPEN_REGISTRY_PORT

OPEN = f"{CTL.address}:{OPEN_REGISTRY_PORT}"


@pytest.fixture
def image(lab: Lab) -> str:
    """What the open registry has."""
    (found, *_) = sorted((lab.paths.state / "registry/open/docker/registry/v2/repositories").rglob("_manifests"))
    repository = found.parent.relative_to(lab.paths.state / "registry/open/docker/registry/v2/repositories")
    (tag, *_) = sorted(path.name for path in (found / "tags").iterdir())
    return f"docker://{OPEN}/{repository}:{tag}"


def import_script(image: str) -> str:
    into = "cd $(mktemp -d); trap 'rm -rf $PWD' EXIT"
    return f"{into}; enroot import -o image.sqsh {image} && test -s image.sqsh"


def test_a_registry_that_is_away_fails_an_import(lab: Lab, image: str) -> None:
    with fault(lab, "registry-down"):
        done = try_as_alice(lab, import_script(image))
        assert done.returncode != 0
        assert "Could not connect" in done.stderr or "Failed to connect" in done.stderr
    assert try_as_alice(lab, import_script(image)).returncode == 0


def test_a_slow_registry_gives_an_image_in_the_end(lab: Lab, image: str) -> None:
    with fault(lab, "registry-slow", "512"):
        began = time.monotonic()
        done = try_as_alice(lab, import_script(image))
        assert done.returncode == 0, done.stderr
        assert time.monotonic() - began >= 1
