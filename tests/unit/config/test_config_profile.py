from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from towline.config.profile import ClusterProfile


def profile(**fields: Any) -> ClusterProfile:
    return ClusterProfile.model_validate({"name": "a", "hosts": "login", "root": "/lustre/me", **fields})


@pytest.mark.parametrize(
    "root", ["/", "//", "/.", "lustre", "/lustre/../etc", "/lustre/%u", "/a b", "/a\nb", "/a,b", ""]
)
def test_roots_that_could_harm_are_refused(root: str) -> None:
    with pytest.raises(ValidationError):
        profile(root=root)


def test_a_root_is_kept_in_its_plain_form() -> None:
    assert profile(root="//lustre/./me//").root == "/lustre/me"


@pytest.mark.parametrize("host", ["-oProxyCommand=x", "a b", "", "a;b", "a\n", "$(x)", "login,-oX"])
def test_hosts_that_could_become_options_or_shell_text_are_refused(host: str) -> None:
    with pytest.raises(ValidationError):
        profile(hosts=[host])


@pytest.mark.parametrize("host", ["login1", "login.example.org", "10.77.0.9", "fe80::1%eth0", "::1", "my_alias"])
def test_hosts_as_people_write_them_are_taken(host: str) -> None:
    assert profile(hosts=host).hosts == (host,)


@pytest.mark.parametrize(("host", "setting"), [("me@login", "user"), ("login:2222", "port")])
def test_a_user_or_port_in_a_host_is_sent_to_its_own_setting(host: str, setting: str) -> None:
    with pytest.raises(ValidationError, match=f"`{setting}`"):
        profile(hosts=host)


@pytest.mark.parametrize("user", ["-l", "-oProxyCommand=x", "a b", "", "a;b", "a\n"])
def test_users_that_could_become_options_are_refused(user: str) -> None:
    with pytest.raises(ValidationError):
        profile(user=user)


@given(st.text(min_size=1))
def test_no_accepted_host_or_user_begins_like_an_option_or_holds_blanks(text: str) -> None:
    for fields in ({"hosts": [text]}, {"user": text}):
        try:
            made = profile(**fields)
        except ValidationError:
            continue
        for word in (*made.hosts, made.user or "x"):
            assert word[0] not in "-'\"`$"
            assert not any(char.isspace() or char in ";&|<>`'\"\\" for char in word)


def test_a_local_cluster_needs_no_hosts_and_an_ssh_cluster_does() -> None:
    assert profile(transport="local", hosts=[]).hosts == ()
    with pytest.raises(ValidationError, match="login host"):
        profile(hosts=[])


def test_local_files_follow_the_home_directory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/me")
    assert profile(identity_file="~/.ssh/id").identity_file == Path("/home/me/.ssh/id")


@pytest.mark.parametrize("path", ["id_rsa", "./id", "/a\nb", '/a"b', ""])
def test_local_files_must_be_absolute_and_plain(path: str) -> None:
    with pytest.raises(ValidationError):
        profile(known_hosts_file=path)


@pytest.mark.parametrize(
    "fields",
    [
        {"setup": "module load slurm\nrm x"},
        {"partition": "a b"},
        {"account": "-x"},
        {"image": "x.sqsh"},
        {"time": "soon"},
        {"poll_interval": 0},
        {"mounts": ["data"]},
        {"transport": "telnet"},
        {"channels": 0},
        {"keepalive": 0},
        {"transfer_host": "-oProxyCommand=x"},
        {"transfer_host": "me@dtn"},
        {"path_map": ["/a:/b"]},
        {"transfer_host": "dtn", "path_map": ["/a"]},
        {"transfer_host": "dtn", "path_map": ["/a:b"]},
        {"transfer_host": "dtn", "path_map": ["/a:/b:/c"]},
        {"transfer_host": "dtn", "path_map": ["/a/../b:/c"]},
        {"transfer_host": "dtn", "path_map": ["/a/:/c"]},
        {"transfer_host": "dtn", "path_map": ["/a:/b\n"]},
        {"transfer_host": "dtn", "path_map": ["/a:/b", "/a:/c"]},
    ],
)
def test_values_that_cannot_be_right_are_refused(fields: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        profile(**fields)


def test_walltimes_are_read_as_people_write_them() -> None:
    assert profile(time="4h").time == 14400


def test_a_path_map_is_a_list_in_files_and_separated_by_commas_in_the_environment() -> None:
    pairs = ("/scratch:/mnt/scratch", "/home:/export/home")
    assert profile(transfer_host="dtn", path_map=list(pairs)).path_map == pairs
    assert profile(transfer_host="dtn", path_map=", ".join(pairs)).path_map == pairs


@pytest.mark.parametrize("setting", ["image_cache", "data_cache"])
@pytest.mark.parametrize(
    "path", ["/a b", "/a'b", '/a"b', "/a\\b", "/a\tb", "/a;b", "/a$b", "/a`b", "/ü", "/a%b", "/a:b"]
)
def test_places_of_jobs_are_paths_that_slurm_takes(setting: str, path: str) -> None:
    """Jobs that make images and copies have their logs there: the path stands in their `#SBATCH` lines."""
    with pytest.raises(ValidationError, match=setting):
        profile(**{setting: path})
