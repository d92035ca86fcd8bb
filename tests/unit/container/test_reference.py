"""One reference in the spellings of Pyxis, Enroot and registries.

What Pyxis and Enroot make of each row of `TABLE` stands in references-recorded.txt: a real Pyxis 0.24 was given it on a
real Slurm, and what it asked `enroot` for was read by the parsers of Enroot 4.1.2 and 3.4.1. The registry's spelling is
Docker's grammar, and compared with the registry, repository and tag that Enroot asks. The rows of `STARTED` were also
started or refused by the real ones as a whole (tests/lab/recorded).
"""

from __future__ import annotations

from pathlib import Path

import pytest

from towline.container.reference import enroot_form, pyxis_form, registry_form
from towline.container.registry import registry_arguments
from towline.models.image import Image

DIGEST = "sha256:" + "0123456789abcdef" * 4
LAB = Path(__file__).parents[2] / "lab" / "recorded" / "pyxis-0.24-enroot-4.1.txt"
RECORDED = {
    asked: (told, now, before)
    for line in (Path(__file__).parent / "references-recorded.txt").read_text().splitlines()
    if not line.startswith("#")
    for asked, told, now, before in [line.split("\t")]
}
"""What was given to Pyxis → what it asked of enroot, and what Enroot 4.1.2 and 3.4.1 read in that."""

STARTED = [
    ("registry.lab:5000#demo:latest", "registry.lab:5000#demo:latest", "registry.lab:5000/demo:latest"),
    ("docker://registry.lab:5000#demo:latest", "registry.lab:5000#demo:latest", "registry.lab:5000/demo:latest"),
    ("registry.lab:5000/demo:latest", "registry.lab:5000#demo:latest", "registry.lab:5000/demo:latest"),
    ("docker://registry.lab:5000/demo:latest", "registry.lab:5000#demo:latest", "registry.lab:5000/demo:latest"),
    ("registry.lab:5000/demo:nosuchtag", "registry.lab:5000#demo:nosuchtag", "registry.lab:5000/demo:nosuchtag"),
    ("registry.lab:5000#nosuch:latest", "registry.lab:5000#nosuch:latest", "registry.lab:5000/nosuch:latest"),
    ("registry.lab:5001/demo:latest", "registry.lab:5001#demo:latest", "registry.lab:5001/demo:latest"),
    ("puller@registry.lab:5001#demo:latest", "puller@registry.lab:5001#demo:latest", "registry.lab:5001/demo:latest"),
    ("registry.lab:5999/demo:latest", "registry.lab:5999#demo:latest", "registry.lab:5999/demo:latest"),
    ("nosuch.invalid:5000/demo:latest", "nosuch.invalid:5000#demo:latest", "nosuch.invalid:5000/demo:latest"),
]

TABLE = [
    *STARTED,
    ("ubuntu", "ubuntu", "docker.io/library/ubuntu:latest"),
    ("ubuntu:22.04", "ubuntu:22.04", "docker.io/library/ubuntu:22.04"),
    ("docker://ubuntu", "ubuntu", "docker.io/library/ubuntu:latest"),
    ("docker://ubuntu:24.04", "ubuntu:24.04", "docker.io/library/ubuntu:24.04"),
    ("library/ubuntu", "library/ubuntu", "docker.io/library/ubuntu:latest"),
    ("python:3.12-slim", "python:3.12-slim", "docker.io/library/python:3.12-slim"),
    ("nvidia/cuda:12.4.1-base", "nvidia/cuda:12.4.1-base", "docker.io/nvidia/cuda:12.4.1-base"),
    ("pytorch/pytorch", "pytorch/pytorch", "docker.io/pytorch/pytorch:latest"),
    ("a/b/c/d:1", "a/b/c/d:1", "docker.io/a/b/c/d:1"),
    ("docker.io/ubuntu:22.04", "ubuntu:22.04", "docker.io/library/ubuntu:22.04"),
    ("docker.io/library/ubuntu", "library/ubuntu", "docker.io/library/ubuntu:latest"),
    ("docker.io#nvidia/cuda", "nvidia/cuda", "docker.io/nvidia/cuda:latest"),
    ("index.docker.io/a/b", "a/b", "docker.io/a/b:latest"),
    ("registry-1.docker.io/a/b:2", "a/b:2", "docker.io/a/b:2"),
    ("docker://docker.io/a/b", "a/b", "docker.io/a/b:latest"),
    ("nvcr.io/nvidia/pytorch:24.07-py3", "nvcr.io#nvidia/pytorch:24.07-py3", "nvcr.io/nvidia/pytorch:24.07-py3"),
    ("nvcr.io#nvidia/pytorch:24.07-py3", "nvcr.io#nvidia/pytorch:24.07-py3", "nvcr.io/nvidia/pytorch:24.07-py3"),
    ("docker://nvcr.io#nvidia/pytorch", "nvcr.io#nvidia/pytorch", "nvcr.io/nvidia/pytorch:latest"),
    ("docker://nvcr.io/nvidia/pytorch", "nvcr.io#nvidia/pytorch", "nvcr.io/nvidia/pytorch:latest"),
    (
        "nvcr.io/nvidia/tao/tao-toolkit:6.26.3-pyt",
        "nvcr.io#nvidia/tao/tao-toolkit:6.26.3-pyt",
        "nvcr.io/nvidia/tao/tao-toolkit:6.26.3-pyt",
    ),
    ("$oauthtoken@nvcr.io#nvidia/x:1", "$oauthtoken@nvcr.io#nvidia/x:1", "nvcr.io/nvidia/x:1"),
    ("ghcr.io/org/app:sha-1a2b", "ghcr.io#org/app:sha-1a2b", "ghcr.io/org/app:sha-1a2b"),
    ("quay.io/a/b", "quay.io#a/b", "quay.io/a/b:latest"),
    ("public.ecr.aws/x/y:v1", "public.ecr.aws#x/y:v1", "public.ecr.aws/x/y:v1"),
    (
        "123456789012.dkr.ecr.us-east-1.amazonaws.com/t:1",
        "123456789012.dkr.ecr.us-east-1.amazonaws.com#t:1",
        "123456789012.dkr.ecr.us-east-1.amazonaws.com/t:1",
    ),
    ("us-docker.pkg.dev/p/r/i:t", "us-docker.pkg.dev#p/r/i:t", "us-docker.pkg.dev/p/r/i:t"),
    ("registry.gitlab.com/g/s/p/i:main", "registry.gitlab.com#g/s/p/i:main", "registry.gitlab.com/g/s/p/i:main"),
    ("localhost/x:1", "localhost#x:1", "localhost/x:1"),
    ("localhost:5000/x", "localhost:5000#x", "localhost:5000/x:latest"),
    ("registry:5000/team/x:v1", "registry:5000#team/x:v1", "registry:5000/team/x:v1"),
    ("registry#x:1", "registry#x:1", "registry/x:1"),
    ("registry#team/x", "registry#team/x", "registry/team/x:latest"),
    ("docker://registry#team/x:1", "registry#team/x:1", "registry/team/x:1"),
    ("10.0.0.1/x", "10.0.0.1#x", "10.0.0.1/x:latest"),
    ("10.0.0.1:5000/x:1", "10.0.0.1:5000#x:1", "10.0.0.1:5000/x:1"),
    ("[::1]:5000/x", "[::1]:5000#x", "[::1]:5000/x:latest"),
    ("My-Registry.example.com/x", "My-Registry.example.com#x", "My-Registry.example.com/x:latest"),
    ("registry.example.com:443/a_b/c__d/e-f/g.h:1", "registry.example.com:443#a_b/c__d/e-f/g.h:1", None),
    ("team/x:v1.2.3_rc-1", "team/x:v1.2.3_rc-1", "docker.io/team/x:v1.2.3_rc-1"),
    ("x.sqsh:1", "x.sqsh:1", "docker.io/library/x.sqsh:1"),
    (f"ubuntu@{DIGEST}", f"ubuntu:{DIGEST}", f"docker.io/library/ubuntu@{DIGEST}"),
    (f"ubuntu:22.04@{DIGEST}", f"ubuntu:{DIGEST}", f"docker.io/library/ubuntu@{DIGEST}"),
    (f"host:5000/x@{DIGEST}", f"host:5000#x:{DIGEST}", f"host:5000/x@{DIGEST}"),
    (f"nvcr.io/x@{DIGEST}", f"nvcr.io#x:{DIGEST}", f"nvcr.io/x@{DIGEST}"),
    (f"nvcr.io/x:1@{DIGEST}", f"nvcr.io#x:{DIGEST}", f"nvcr.io/x@{DIGEST}"),
    (f"u@nvcr.io#x@{DIGEST}", f"u@nvcr.io#x:{DIGEST}", f"nvcr.io/x@{DIGEST}"),
    ("me@registry#x", "me@registry#x", "registry/x:latest"),
    ("robot$ci@harbor.example.org#p/x:1", "robot$ci@harbor.example.org#p/x:1", "harbor.example.org/p/x:1"),
    ("docker://me@registry.example.org#x:1", "me@registry.example.org#x:1", "registry.example.org/x:1"),
    ("cr.example.org/x:LATEST", "cr.example.org#x:LATEST", "cr.example.org/x:LATEST"),
]


@pytest.mark.parametrize(("text", "pyxis", "registry"), TABLE)
def test_one_reference_in_three_spellings(text: str, pyxis: str, registry: str | None) -> None:
    image = Image.parse(text)
    assert pyxis_form(image) == pyxis
    assert enroot_form(image) == f"docker://{pyxis}"
    assert registry_form(image) == (registry or f"{text}")


@pytest.mark.parametrize("text", [text for text, _, _ in TABLE])
def test_the_real_ones_ask_the_registry_for_the_same(text: str) -> None:
    """As the check of a registry asks for it. Older ones take only Towline's spelling, and fill in the hub later."""
    image = Image.parse(text)
    told, now, before = RECORDED[pyxis_form(image)]
    assert told == f"import {enroot_form(image)}"
    host, repository, reference, user = registry_arguments(image)
    assert now == f"{user or '-'} {host} {repository} {reference}"
    user, host, repository, tag = before.split(" ")
    host = "registry-1.docker.io" if host == "-" else host
    repository = repository if "/" in repository or host != "registry-1.docker.io" else f"library/{repository}"
    assert now == f"{user} {host} {repository} {tag if tag != '-' else 'latest'}"


def test_what_was_typed_would_not_do_everywhere() -> None:
    """Why a reference is spelled anew: an older Enroot refuses it, or another image is meant than Docker means."""
    assert RECORDED["10.0.0.1:5000/x:1"][2] == "refused"
    assert RECORDED["localhost/x:1"][1] == "- registry-1.docker.io localhost/x 1"
    assert RECORDED["x.sqsh"][0] == "import docker://x.sqsh"


@pytest.mark.parametrize(("text", "pyxis", "registry"), STARTED)
def test_the_real_ones_took_the_same_spelling(text: str, pyxis: str, registry: str) -> None:
    recorded = LAB.read_text()
    assert f"--container-image={text} true" in recorded or f"srun --container-image={pyxis} true" in recorded
    assert f"docker image: {pyxis}\n" in recorded


@pytest.mark.parametrize("path", ["/lustre/images/bb.sqsh", "/lustre/images/nope.sqsh", "/lustre/alice/notsq.sqsh"])
def test_paths_that_the_real_ones_took_for_files(path: str) -> None:
    assert pyxis_form(Image.parse(path)) == path
    assert f"srun --container-image={path} true" in LAB.read_text()
    assert RECORDED["/lustre/images/bb.sqsh"][0] == "create /lustre/images/bb.sqsh"


@pytest.mark.parametrize("text", ["x.sqsh", "foo bar", "registry.lab:5000#De mo:la!test", ""])
def test_what_the_real_ones_only_failed_on_is_refused(text: str) -> None:
    assert f"--container-image={text}" in LAB.read_text().replace("'", "")
    with pytest.raises(ValueError, match=r"empty|absolute|lower-case|not a tag"):
        Image.parse(text)


def test_there_are_enough_of_them() -> None:
    assert len({text for text, _, _ in TABLE}) >= 60


def test_the_full_form_is_read_as_the_same_image() -> None:
    text = "nvcr.io/nvidia/pytorch:24.07-py3"
    assert registry_form(Image.parse(text)) == text
    assert Image.parse(pyxis_form(Image.parse(text))) == Image.parse(text)


def test_a_file_is_not_in_a_registry() -> None:
    image = Image.parse("/lustre/images/python.sqsh")
    assert pyxis_form(image) == "/lustre/images/python.sqsh"
    for form in (enroot_form, registry_form):
        with pytest.raises(ValueError, match="is a file on the cluster"):
            form(image)
