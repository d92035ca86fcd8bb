"""Which place on the cluster a person means."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

import pytest

from towline.config.profile import ClusterProfile
from towline.engine.session import Session
from towline.engine.staging.pushing import place_on_cluster
from towline.models.errors import UsageError

SESSION = cast("Session", SimpleNamespace(profile=ClusterProfile(name="x", hosts=("h",), root="/lustre/me")))


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("/lustre/sets/", "/lustre/sets"),
        ("lustre:///lustre/a b", "/lustre/a b"),
        ("sets/a", "/lustre/me/data/sets/a"),
        ("-rf", "/lustre/me/data/-rf"),
    ],
)
def test_a_place_is_a_path_or_a_name_below_the_roots_data(text: str, place: str) -> None:
    assert place_on_cluster(SESSION, text) == place


@pytest.mark.parametrize("text", ["/", "//", "lustre:///", "lustre:///.", "/a/../b", "/a\nb", "s3://a/b", "http://x/y"])
def test_what_is_no_place_is_refused(text: str) -> None:
    """The whole file system would be looked at, file by file."""
    with pytest.raises(UsageError, match="no place on the cluster"):
        place_on_cluster(SESSION, text)
