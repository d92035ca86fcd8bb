"""What the profile says of connections reaches those that make them."""

from __future__ import annotations

from typing import Any

import pytest

from towline.config.profile import ClusterProfile
from towline.engine.reaching import access_of, open_remote, open_transfers
from towline.remote.local import Local
from towline.remote.memory import InMemory
from towline.remote.ssh.openssh import OpenSSH


def profile(**fields: Any) -> ClusterProfile:
    return ClusterProfile.model_validate({"name": "a", "hosts": ["login"], "root": "/lustre/me", **fields})


def test_keepalive_is_the_connections() -> None:
    assert access_of(profile(keepalive=3)).keepalive == 3
    assert access_of(profile()).keepalive == 15


def test_channels_bound_the_calls_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []

    class Watched(OpenSSH):
        def __init__(self, *args: Any, channels: int, **rest: Any) -> None:
            asked.append(channels)
            super().__init__(*args, channels=channels, **rest)

    monkeypatch.setattr("towline.engine.reaching.OpenSSH", Watched)
    made = profile(channels=3, transfer_host="dtn")
    open_transfers(made, open_remote(made))
    open_remote(profile())
    assert asked == [3, 3, 8]


def test_files_go_over_the_login_hosts_unless_there_is_a_host_for_them() -> None:
    login = InMemory(lambda operation: pytest.fail("no call"))
    assert open_transfers(profile(), login).remote is login
    over = open_transfers(profile(transfer_host="dtn", path_map=["/lustre:/export", "/lustre/fast:/nvme"]), login)
    assert isinstance(over.remote, OpenSSH)
    assert over.remote.host == "dtn"
    assert [over.there(path) for path in ("/lustre/me", "/lustre/fast/me", "/home")] == [
        "/export/me",
        "/nvme/me",
        "/home",
    ]
    assert isinstance(open_transfers(profile(transfer_host="local"), login).remote, Local)
