"""What TAO's SDK refuses on real login hosts, what it leaves alone, and what cannot make it lose or double a job."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.lab.tao_jobs import IMAGE
from towline.lab import Lab
from towline.lab.layout import ALICE
from towline.models.errors import TowlineError
from towline.tao.platforms.slurm import SlurmSDK


def test_a_key_that_others_can_read_is_refused_and_stays_as_it_is(
    tao_variables: dict[str, str], lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = tmp_path / "key"
    shutil.copy(lab.paths.key(ALICE), key)
    key.chmod(0o644)
    monkeypatch.setenv("SSH_KEY_PATH", str(key))
    monkeypatch.setenv("TOWLINE_STATE_DIR", f"{tao_variables['TOWLINE_STATE_DIR']}-own")
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    with SlurmSDK() as sdk:
        with pytest.raises(TowlineError) as refused:
            sdk.create_job(IMAGE, "true", gpu_count=0)
        assert sdk.list_jobs("Error"), "and it was not started"
    assert str(key) in str(refused.value)
    assert f"chmod 600 {key}" in refused.value.fix
    assert key.stat().st_mode & 0o777 == 0o644
    key.chmod(0o600)
    with SlurmSDK() as sdk:
        assert sdk.check_path("/lustre")
