"""Container image references, read once by the Docker grammar.

Accepted: `ubuntu`, `nvidia/cuda:12.4.1-base`, `nvcr.io/nvidia/pytorch:24.07-py3`, `host:5000/x@sha256:…`,
`registry#image:tag`, `docker://registry#image:tag`, `docker://registry/image:tag`, absolute paths of `.sqsh` files, and
`./x.sqsh`: a path below the profile's root, for the directory where a command is typed says nothing of the cluster.
Apptainer's `.sif` files are paths, too; only a cluster with that runtime can start them.
The first component is a registry only if it has `.` or `:` or is `localhost`
(the rule of Docker's reference grammar; Pyxis and Enroot write `registry#image` instead).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from towline.models.values import check_absolute_path

_REGISTRY = re.compile(r"(?:[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?|\[[0-9a-fA-F:]+\])(?::\d{1,5})?")
_COMPONENT = r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*"
_REPOSITORY = re.compile(rf"{_COMPONENT}(?:/{_COMPONENT})*")
_TAG = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}")
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
_MAX_REPOSITORY = 255
_SIF = (".sif", ".simg")
_OTHER_FORMATS = (".tar", ".tar.gz", ".tgz")
_USER = re.compile(r"[A-Za-z0-9$_.+-]+")


@dataclass(frozen=True)
class Image:
    """A `.sqsh` file on the cluster (`path` is set) or an image in a registry (`repository` is set).

    Attributes:
        path: path of a squashfs file on the shared file system, absolute or, before `against`, with `./` in front;
            empty for a registry image.
        registry: host and port, empty for the default one.
        repository: path of the image within its registry.
        tag: the tag as written, empty when none was.
        digest: `sha256:…`, empty when none was written.
        user: the registry user written in front of the registry (`user@registry#…`), else empty.
    """

    path: str = ""
    registry: str = ""
    repository: str = ""
    tag: str = ""
    digest: str = ""
    user: str = ""

    @property
    def is_file(self) -> bool:
        """Whether the image is a squashfs file rather than a reference into a registry."""
        return bool(self.path)

    @property
    def is_sif(self) -> bool:
        """Whether the image is a file of Apptainer's or Singularity's."""
        return self.path.endswith(_SIF)

    def against(self, root: str) -> Image:
        """The image with a path that begins with `./` made absolute: it lies below `root`, the profile's directory."""
        if not self.path.startswith("./"):
            return self
        return replace(self, path=f"{root.rstrip('/')}/{self.path.removeprefix('./')}")

    @classmethod
    def parse(cls, text: str) -> Image:
        """Read a reference.

        Raises:
            ValueError: it cannot be a reference; the sentence says which part, and what was probably meant.
        """
        if text.startswith("/"):
            return cls(path=_check_file(text))
        if text.startswith("./"):
            return cls(path="./" + _check_file("/" + text.removeprefix("./").lstrip("/")).removeprefix("/"))
        _refuse_lookalikes(text)
        return _parse_registry_form(text.removeprefix("docker://"))


def _check_file(text: str) -> str:
    check_absolute_path(text)
    if text.endswith("/"):
        raise ValueError(f"{text!r} is a directory; an image file ends in .sqsh")
    if text.endswith(_OTHER_FORMATS):
        raise ValueError(f"{text!r} is not a squashfs file; convert it with 'enroot import' and name the .sqsh file")
    return text


def _refuse_lookalikes(text: str) -> None:
    if not text:
        raise ValueError("the image is empty; name a .sqsh file on the cluster or a registry image")
    if text.startswith(("../", "~")):
        raise ValueError(f"{text!r} is relative; give the absolute path of the .sqsh file on the cluster")
    if "://" not in text and text.endswith((".sqsh", ".squashfs")):
        raise ValueError(
            f"{text!r} would be taken for an image of that name in a registry; give the absolute path, or write "
            f"./{text} for a file below the profile's root"
        )
    if text.startswith("dockerd://"):
        raise ValueError("dockerd:// images live in a Docker daemon, which compute nodes do not have")
    scheme, mark, _ = text.partition("://")
    if mark and scheme != "docker":
        raise ValueError(f"images from {scheme}:// are not supported; use a registry reference or a .sqsh path")


def _parse_registry_form(text: str) -> Image:
    user, registry, rest = _split_registry(text)
    rest, _, digest = rest.partition("@")
    repository, _, tag = rest.partition(":")
    if "@" in text.split("#")[-1] and not _DIGEST.fullmatch(digest):
        raise ValueError(f"{digest!r} in {text!r} is not a digest (sha256: and 64 hexadecimal digits)")
    if ":" in rest and not _TAG.fullmatch(tag):
        raise ValueError(f"{tag!r} in {text!r} is not a tag (letters, digits and ._-, at most 128)")
    if not _REPOSITORY.fullmatch(repository):
        raise ValueError(f"{text!r} is not an image reference: {repository!r} is not a lower-case repository path")
    if len(repository) > _MAX_REPOSITORY:
        raise ValueError(f"the repository path {repository[:40]!r}… is longer than {_MAX_REPOSITORY} characters")
    return Image(registry=registry, repository=repository, tag=tag, digest=digest, user=user)


def _split_registry(text: str) -> tuple[str, str, str]:
    head, hash_mark, rest = text.partition("#")
    if hash_mark:
        user, at, registry = head.rpartition("@")
        if at and not _USER.fullmatch(user):
            raise ValueError(f"{user!r} in {text!r} is not a registry user")
        return user, _check_registry(registry, text), rest
    first, slash, rest = text.partition("/")
    if slash and ("." in first or ":" in first or first == "localhost"):
        return "", _check_registry(first, text), rest
    return "", "", text


def _check_registry(registry: str, text: str) -> str:
    if not _REGISTRY.fullmatch(registry):
        raise ValueError(f"{registry!r} in {text!r} is not a registry (host name or host:port)")
    return registry
