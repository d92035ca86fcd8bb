"""Lists of nodes as Slurm abbreviates them."""

from __future__ import annotations

import pytest

from towline.slurm.nodes import MOST, expand_nodes


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("", ()),
        ("node1", ("node1",)),
        ("gpu[01-03,7],login1", ("gpu01", "gpu02", "gpu03", "gpu7", "login1")),
        ("r[1-2]n[08-09]", ("r1n08", "r1n09", "r2n08", "r2n09")),
        ("a[1-2]-ib,b", ("a1-ib", "a2-ib", "b")),
        ("odd[x]", ("odd[x]",)),
    ],
)
def test_ranges_become_names(text: str, names: tuple[str, ...]) -> None:
    assert expand_nodes(text) == names


def test_a_list_without_end_is_cut() -> None:
    assert len(expand_nodes("n[0-999999999]")) == MOST
