from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from towline.config.toml import parse_toml
from towline.config.write import make_profile, profile_toml, with_default, write_private
from towline.models.errors import UsageError

TEXT = st.text(st.characters(exclude_categories=["Cs"]), min_size=1)


@given(st.dictionaries(st.sampled_from(["user", "root", "image", "setup"]), TEXT), st.lists(TEXT, min_size=1))
def test_what_is_written_is_what_is_read(values: dict[str, str], hosts: list[str]) -> None:
    given_values: dict[str, object] = {"hosts": hosts, **values, "account": "", "port": None}
    text = profile_toml("my.cluster", given_values)
    assert parse_toml(Path("x"), text.encode()) == {"clusters": {"my.cluster": {"hosts": hosts, **values}}}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", 'default_cluster = "b"\n'),
        ('default_cluster = "a"\n', 'default_cluster = "b"\n'),
        ('# mine\n[clusters.a]\nuser = "x"\n', 'default_cluster = "b"\n# mine\n[clusters.a]\nuser = "x"\n'),
        ('# default_cluster = "a"\n', 'default_cluster = "b"\n# default_cluster = "a"\n'),
    ],
)
def test_the_default_is_set_and_the_rest_stays(before: str, after: str) -> None:
    assert with_default(before, "b") == after


def test_profiles_are_private(tmp_path: Path) -> None:
    path = tmp_path / "clusters.d" / "a.toml"
    write_private(path, "x = 1\n")
    assert path.stat().st_mode & 0o777 == 0o600
    assert [each.name for each in path.parent.iterdir()] == ["a.toml"]


def test_a_value_that_cannot_be_right_is_named() -> None:
    with pytest.raises(UsageError) as caught:
        make_profile("a", {"hosts": ["a b"], "root": "/"})
    assert {line.partition(":")[0] for line in caught.value.why.splitlines()} == {"hosts.0", "root"}
