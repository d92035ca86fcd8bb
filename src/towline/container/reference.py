"""One image reference in the spellings of those who read it."""

from __future__ import annotations

from towline.models.image import Image

DOCKER_HUB = "docker.io"
_HUB_NAMES = frozenset({"", DOCKER_HUB, "index.docker.io", "registry-1.docker.io"})
"""Names of the default registry. Enroot before 4.0 asks `docker.io` itself when told so, which is a web site."""


def pyxis_form(image: Image) -> str:
    """The image as `srun --container-image` takes it: a path, or `[user@][registry#]repository[:tag]`."""
    return image.path if image.is_file else _hash_form(image)


def enroot_form(image: Image) -> str:
    """The image as `enroot import` takes it: `docker://[user@][registry#]repository[:tag]`.

    Raises:
        ValueError: the image is a file, which needs no import.
    """
    _refuse_file(image)
    return f"docker://{_hash_form(image)}"


def registry_form(image: Image) -> str:
    """The image as registry tools take it, in full: `registry/repository:tag`, or `…@sha256:…` when a digest is given.

    Raises:
        ValueError: the image is a file, which no registry knows.
    """
    _refuse_file(image)
    on_hub = image.registry in _HUB_NAMES
    registry = DOCKER_HUB if on_hub else image.registry
    official = on_hub and "/" not in image.repository
    repository = f"library/{image.repository}" if official else image.repository
    version = f"@{image.digest}" if image.digest else f":{image.tag or 'latest'}"
    return f"{registry}/{repository}{version}"


def _hash_form(image: Image) -> str:
    """Enroot's grammar. A digest stands in the place of the tag: before 4.0 there is no other way to write it."""
    user = f"{image.user}@" if image.user else ""
    registry = "" if image.registry in _HUB_NAMES else f"{image.registry}#"
    version = image.digest or image.tag
    return f"{user}{registry}{image.repository}{':' if version else ''}{version}"


def _refuse_file(image: Image) -> None:
    if image.is_file:
        raise ValueError(f"{image.path} is a file on the cluster, not an image in a registry")
