"""Where data may come from, and what a user reads when it cannot."""

from __future__ import annotations

import pytest

from towline.models.parts import check_uri, shared_path


@pytest.mark.parametrize(
    ("uri", "path"),
    [
        ("/lustre/set", "/lustre/set"),
        ("lustre:///lustre/set", "/lustre/set"),
        ("slurm://host/set", "/host/set"),
        ("slurm:///lustre/set", "/lustre/set"),
        ("s3://bucket/set", None),
        ("hf_dataset://org/set", None),
    ],
)
def test_paths_of_the_shared_file_system_are_told_from_data_elsewhere(uri: str, path: str | None) -> None:
    assert check_uri(uri) == uri
    assert shared_path(uri) == path


@pytest.mark.parametrize(
    ("uri", "command"),
    [
        ("file:///home/me/set", "towline push /home/me/set`"),
        ("FILE:///home/me/set", "towline push /home/me/set`"),
        ("./my set", "towline push './my set'`"),
        ("set", "towline push set`"),
        ("~/set", "towline push ~/set`"),
    ],
)
def test_data_of_this_machine_is_refused_with_the_way_out(uri: str, command: str) -> None:
    with pytest.raises(ValueError, match="lies on this machine") as refused:
        check_uri(uri)
    assert command in str(refused.value)


@pytest.mark.parametrize(
    ("uri", "why"),
    [
        ("ftp://host/a", "scheme that is not known"),
        ("s3://bucket/a b", "blanks"),
        ("", "names nothing"),
        (" ", "names nothing"),
        ("s3://", "names nothing"),
        ("s3:///prefix", "names nothing"),
        ("hf:///set", "names nothing"),
        ("lustre://", "names nothing"),
        ("https://me:secret@host/a", "must not carry a user or password"),
    ],
)
def test_data_that_cannot_be_brought_is_refused(uri: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        check_uri(uri)


@pytest.mark.parametrize("uri", ["/a/../b", "lustre:///a/../b", "slurm://host/../../etc", "lustre:///a:b"])
def test_a_path_that_leads_elsewhere_is_refused(uri: str) -> None:
    with pytest.raises(ValueError, match="must not contain"):
        check_uri(uri)
