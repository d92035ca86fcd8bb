from __future__ import annotations

import pytest

from towline.slurm.hosts import host_names


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("", ()),
        ("a", ("a",)),
        ("a,b,a", ("a", "b")),
        ("n[1-3,7],g", ("n1", "n2", "n3", "n7", "g")),
        ("n[08-11]", ("n08", "n09", "n10", "n11")),
        ("r[1-2]n[1-2]-ib", ("r1n1-ib", "r1n2-ib", "r2n1-ib", "r2n2-ib")),
        ("n[1-99999999]", ()),
        ("n[a-b]", ()),
        ("n[", ("n",)),
    ],
)
def test_host_names(text: str, names: tuple[str, ...]) -> None:
    assert host_names(text) == names
