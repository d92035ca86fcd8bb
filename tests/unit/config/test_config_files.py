from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from towline.config.files import load_profiles
from towline.config.profile import ClusterProfile
from towline.models.errors import ConfigError, NotFound

Write = Callable[[str, str], Path]
Load = Callable[..., ClusterProfile]
ONE = '[clusters.{name}]\nhosts = "login-{name}"\nroot = "/lustre/{name}"\n'


def one(name: str) -> str:
    return ONE.format(name=name)


def test_the_only_profile_is_taken_without_being_named(write: Write, load: Load) -> None:
    write("clusters.d/a.toml", one("a"))
    assert load().name == "a"


def test_config_toml_and_clusters_d_count_alike(write: Write, tmp_path: Path) -> None:
    write("config.toml", one("main"))
    write("clusters.d/b.toml", one("b"))
    write("clusters.d/a.toml", one("a") + one("a2"))
    write("clusters.d/notes.txt", "not a profile")
    found = load_profiles(env={"TOWLINE_CONFIG_DIR": str(tmp_path)})
    assert [profile.name for profile in found] == ["main", "a", "a2", "b"]


def test_who_wins_when_a_profile_is_chosen(write: Write, load: Load) -> None:
    write("config.toml", 'default_cluster = "b"\n' + one("a") + one("b") + one("c"))
    assert load().name == "b"
    assert load(TOWLINE_CLUSTER="a").name == "a"
    assert load("c", TOWLINE_CLUSTER="a").name == "c"


def test_several_profiles_without_a_default_are_listed(write: Write, load: Load) -> None:
    write("config.toml", one("a") + one("b"))
    with pytest.raises(ConfigError) as caught:
        load()
    assert "a, b" in caught.value.why
    assert "--cluster" in caught.value.fix


def test_an_unknown_profile_is_not_found_and_the_others_are_listed(write: Write, load: Load) -> None:
    write("config.toml", one("a") + one("b"))
    with pytest.raises(NotFound, match="no cluster 'x'") as caught:
        load("x")
    assert "a, b" in caught.value.why


def test_no_profile_at_all_says_where_to_write_one(tmp_path: Path, load: Load) -> None:
    with pytest.raises(ConfigError, match="no cluster is configured") as caught:
        load()
    assert str(tmp_path) in caught.value.why
    assert "towline lab up" in caught.value.fix


def test_the_environment_overrides_single_settings(write: Write, load: Load) -> None:
    write("config.toml", one("a") + 'partition = "batch"\naccount = "file"\nport = 22\n')
    profile = load(
        TOWLINE_PARTITION="short,long",
        TOWLINE_PORT="2222",
        TOWLINE_HOSTS="login1, login2",
        TOWLINE_MOUNTS="/data,/models:/m:ro",
        TOWLINE_QOS="",
    )
    assert profile.partition == ("short", "long")
    assert profile.port == 2222
    assert profile.hosts == ("login1", "login2")
    assert [(mount.source, mount.target, mount.mode) for mount in profile.mounts] == [
        ("/data", "/data", "rw"),
        ("/models", "/m", "ro"),
    ]
    assert profile.account == "file"
    assert profile.qos is None


def test_a_mistake_in_one_profile_does_not_stop_another(write: Write, load: Load) -> None:
    write("config.toml", one("good"))
    write("clusters.d/bad.toml", '[clusters.bad]\nhosts = "x"\nroot = "/"\n')
    assert load("good").root == "/lustre/good"
    with pytest.raises(ConfigError, match="bad"):
        load("bad")


def test_an_unknown_key_names_near_ones_and_the_file(write: Write, load: Load) -> None:
    path = write("clusters.d/a.toml", one("a") + "partitoin = 'x'\n")
    with pytest.raises(ConfigError) as caught:
        load()
    assert f"{path}: partitoin: there is no such setting; did you mean partition" in caught.value.why


def test_a_wrong_value_names_file_and_key_and_all_are_told_at_once(write: Write, load: Load) -> None:
    path = write("clusters.d/a.toml", one("a") + 'port = 0\ngpu_request = "tres"\n')
    with pytest.raises(ConfigError) as caught:
        load()
    first, second = caught.value.why.splitlines()
    assert first.startswith(f"{path}: port: ")
    assert second.startswith(f"{path}: gpu_request: ")


def test_a_wrong_value_from_the_environment_names_the_variable(write: Write, load: Load) -> None:
    write("clusters.d/a.toml", one("a"))
    with pytest.raises(ConfigError) as caught:
        load(TOWLINE_PORT="ssh")
    assert caught.value.why.startswith("TOWLINE_PORT in the environment: ")


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("config.toml", "[clusters.a\n", "is not valid TOML"),
        ("config.toml", "default_clutser = 'a'\n", "no setting 'default_clutser'"),
        ("config.toml", "default_cluster = 3\n", "default_cluster must be the name"),
        ("config.toml", "hosts = 'login'\n", "no setting 'hosts'"),
        ("config.toml", "clusters = 'a'\n", "must be a table"),
        ("config.toml", "clusters.a = 'login'\n", "must be a table"),
        ("config.toml", "[clusters.a]\nname = 'b'\n", "not a setting"),
        ("clusters.d/a.toml", "default_cluster = 'a'\n", "no setting 'default_cluster'"),
    ],
)
def test_files_that_cannot_be_right_are_named(write: Write, load: Load, name: str, text: str, says: str) -> None:
    path = write(name, text)
    with pytest.raises(ConfigError, match=says) as caught:
        load()
    assert str(path) in str(caught.value)


def test_a_file_that_is_not_text_is_named(write: Write, load: Load) -> None:
    path = write("config.toml", "")
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigError, match="cannot be read"):
        load()


def test_a_cluster_in_two_files_is_refused_and_both_are_named(write: Write, load: Load) -> None:
    first, second = write("config.toml", one("a")), write("clusters.d/a.toml", one("a"))
    with pytest.raises(ConfigError) as caught:
        load()
    assert str(first) in caught.value.what
    assert str(second) in caught.value.what


def test_a_default_that_does_not_exist_is_an_error_with_one_cluster_too(write: Write, load: Load) -> None:
    write("config.toml", 'default_cluster = "typo"\n' + one("a"))
    with pytest.raises(NotFound):
        load()
