from __future__ import annotations

import pytest

from towline.container.reference import enroot_form, pyxis_form, registry_form
from towline.models.image import Image

DIGEST = "sha256:" + "0123456789abcdef" * 4


@pytest.mark.parametrize(
    ("text", "pyxis", "registry"),
    [
        ("ubuntu", "ubuntu", "docker.io/library/ubuntu:latest"),
        ("nvidia/cuda:12.4.1-base", "nvidia/cuda:12.4.1-base", "docker.io/nvidia/cuda:12.4.1-base"),
        ("docker.io/ubuntu:22.04", "ubuntu:22.04", "docker.io/library/ubuntu:22.04"),
        ("index.docker.io/a/b", "a/b", "docker.io/a/b:latest"),
        ("nvcr.io/nvidia/pytorch:24.07-py3", "nvcr.io#nvidia/pytorch:24.07-py3", "nvcr.io/nvidia/pytorch:24.07-py3"),
        ("registry.lab:5000/demo", "registry.lab:5000#demo", "registry.lab:5000/demo:latest"),
        ("localhost/x:1", "localhost#x:1", "localhost/x:1"),
        ("puller@registry.lab:5001#demo:1", "puller@registry.lab:5001#demo:1", "registry.lab:5001/demo:1"),
        (f"nvcr.io/x@{DIGEST}", f"nvcr.io#x:{DIGEST}", f"nvcr.io/x@{DIGEST}"),
        (f"nvcr.io/x:1@{DIGEST}", f"nvcr.io#x:{DIGEST}", f"nvcr.io/x@{DIGEST}"),
    ],
)
def test_one_reference_in_three_spellings(text: str, pyxis: str, registry: str) -> None:
    image = Image.parse(text)
    assert pyxis_form(image) == pyxis
    assert enroot_form(image) == f"docker://{pyxis}"
    assert registry_form(image) == registry


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
