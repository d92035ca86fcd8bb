"""What the lab writes: accounts, names, configuration, profile."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from towline.lab import files, keys, profile, users
from towline.lab.layout import ALICE, BOB, CLUSTER_HOSTS, GPU_NODES, HOSTS, Layout

MACHINE_ACCOUNTS = """\
root:x:0:0:root:/root:/bin/bash
sshd:x:105:65534::/run/sshd:/usr/sbin/nologin
carol:x:1000:1000:Carol:/home/carol:/bin/zsh
slurm:x:64030:64030::/nonexistent:/usr/sbin/nologin
nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin
+::::::
"""


def test_hosts_know_system_accounts_and_cluster_users_but_nobody_of_this_machine() -> None:
    accounts = {line.split(":")[0]: line for line in users.render_passwd(MACHINE_ACCOUNTS).splitlines()}
    assert list(accounts) == ["root", "sshd", "slurm", "nobody", "alice", "bob"]
    assert accounts["alice"] == "alice:x:2001:2001:alice of the lab:/home/alice:/bin/bash"


def test_groups_lose_the_members_they_have_on_this_machine() -> None:
    groups = users.render_group("root:x:0:\nadm:x:4:carol,syslog\ncarol:x:1000:\n").splitlines()
    assert groups == ["root:x:0:", "adm:x:4:", "alice:x:2001:", "bob:x:2002:"]


def test_no_account_has_a_password_and_none_is_locked_to_sshd() -> None:
    fields = [line.split(":")[1] for line in users.render_shadow(users.render_passwd(MACHINE_ACCOUNTS)).splitlines()]
    assert set(fields) == {"*"}


def test_every_host_has_a_name_and_an_address_of_its_own() -> None:
    lines = [line.split() for line in users.host_lines()]
    assert len({address for address, *_ in lines}) == len(CLUSTER_HOSTS)
    names = [name for _, *rest in lines for name in rest]
    assert len(names) == len(set(names))
    assert {"login1.lab", "login2.lab", "registry.lab", "ctl", "node1", "cloud1"} <= set(names)


texts = st.text(st.characters(exclude_characters="\r", exclude_categories=["Cs"]), max_size=200)


@given(before=texts)
def test_the_block_in_etc_hosts_comes_and_goes_without_a_trace(before: str) -> None:
    before = before if not before or before.endswith("\n") else before + "\n"
    during = profile.with_block(before)
    assert during.startswith(before)
    assert "10.77.0.41 login1 login1.lab\n" in during
    assert profile.with_block(during) == during
    assert profile.without_block(during) == before


def test_what_follows_the_block_in_etc_hosts_stays() -> None:
    during = profile.with_block("127.0.0.1 localhost\n") + "10.0.0.1 printer\n"
    assert profile.without_block(during) == "127.0.0.1 localhost\n10.0.0.1 printer\n"


def test_a_block_without_its_end_is_left_to_its_owner() -> None:
    broken = "127.0.0.1 localhost\n# begin towline lab\n10.0.0.1 printer\n"
    assert profile.without_block(broken) == broken


def test_the_profile_names_all_that_a_client_needs(tmp_path: Path) -> None:
    text = profile.render(Layout(tmp_path))
    values = dict(line.split(" = ") for line in text.splitlines() if " = " in line)
    assert "[clusters.lab]" in text
    assert {name: json.loads(value) for name, value in values.items()} == {
        "hosts": ["login1.lab", "login2.lab"],
        "user": "alice",
        "identity_file": f"{tmp_path}/keys/alice",
        "known_hosts_file": f"{tmp_path}/known_hosts",
        "root": "/lustre/alice/towline",
        "partition": "batch",
        "image": "/lustre/images/python.sqsh",
        "mounts": ["/lustre"],
    }


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({"TOWLINE_CONFIG_DIR": "/a", "XDG_CONFIG_HOME": "/b"}, "/a/clusters.d/lab.toml"),
        ({"XDG_CONFIG_HOME": "/b"}, "/b/towline/clusters.d/lab.toml"),
        ({"SUDO_UID": "0", "HOME": "/elsewhere"}, "/root/.config/towline/clusters.d/lab.toml"),
    ],
)
def test_the_profile_is_written_for_the_person_behind_sudo(
    monkeypatch: pytest.MonkeyPatch, environment: dict[str, str], expected: str
) -> None:
    for name in ("TOWLINE_CONFIG_DIR", "XDG_CONFIG_HOME", "SUDO_UID"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert str(profile.path()) == expected


def test_a_file_that_hosts_have_mounted_keeps_its_inode(tmp_path: Path) -> None:
    path = tmp_path / "passwd"
    owner = (path.parent.stat().st_uid, path.parent.stat().st_gid)
    assert files.write_in_place(path, "a long first version\n", 0o600, owner) is True
    inode = path.stat().st_ino
    assert files.write_in_place(path, "second\n", 0o644, owner) is True
    assert files.write_in_place(path, "second\n", 0o644, owner) is False
    assert (path.read_text(), path.stat().st_ino, path.stat().st_mode & 0o777) == ("second\n", inode, 0o644)


def test_a_script_in_use_is_replaced_and_not_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "script"
    path.write_text("old\n")
    with path.open() as reader:
        files.replace(path, "new\n", 0o755)
        assert reader.read() == "old\n"
    assert path.read_text() == "new\n"


def test_known_hosts_has_the_login_hosts_under_each_name(tmp_path: Path) -> None:
    layout = Layout(tmp_path)
    layout.keys.mkdir()
    for name in ("host-login1", "host-login2"):
        make = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(layout.keys / name)]
        subprocess.run(make, check=True)
    layout.known_hosts.write_text(keys.render_known_hosts(layout))
    for name in ("login1.lab", "login1", "10.77.0.41", "login2.lab"):
        found = subprocess.run(
            ["ssh-keygen", "-F", name, "-f", str(layout.known_hosts)], capture_output=True, text=True
        )
        assert "ED25519" in found.stdout.upper(), name


def test_users_and_hosts_are_told_apart() -> None:
    assert (ALICE.account, BOB.account) == ("research", "")
    assert [host.name for host in HOSTS if host.has_gpus] == [*(node.name for node in GPU_NODES), "cloud1"]
