"""Which cluster TAO's variables mean."""

from __future__ import annotations

from pathlib import Path

import pytest

from towline.models.errors import ConfigError
from towline.tao.models import CredentialError
from towline.tao.settings import tao_profile

OWN = '[clusters.own]\nhosts = ["login"]\nroot = "/lustre/me"\ncpus_per_task = 2\npoll_interval = 7\n'


def env(tmp_path: Path, **more: str) -> dict[str, str]:
    return {"TOWLINE_CONFIG_DIR": str(tmp_path), "HOME": str(tmp_path), **more}


def test_what_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(CredentialError, match="SLURM_USER and SLURM_HOSTNAME are not set"):
        tao_profile(env=env(tmp_path))
    with pytest.raises(CredentialError, match="SLURM_HOSTNAME is not set") as error:
        tao_profile(env=env(tmp_path, SSH_USER="alice"))
    assert isinstance(error.value, ConfigError)


def test_taos_variables_come_first(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text(OWN)
    found = tao_profile(5, env(tmp_path, SLURM_USER="alice", SLURM_HOSTNAME="one,two"))
    assert (found.name, found.hosts, found.poll_interval, found.account) == ("tao", ("one", "two"), 5, None)
    assert found.root == "/lustre/fsw/portfolios/edgeai/users/alice"


def test_a_profile_of_ones_own_keeps_its_numbers(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text(OWN)
    found = tao_profile(env=env(tmp_path))
    assert (found.name, found.preset, found.cpus_per_task, found.poll_interval) == ("own", "tao", 2, 7)


def test_a_bad_number_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="SLURM_TIME_HOURS"):
        tao_profile(env=env(tmp_path, SLURM_USER="a", SLURM_HOSTNAME="b", SLURM_TIME_HOURS="four"))
