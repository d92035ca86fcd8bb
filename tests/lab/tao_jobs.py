"""Jobs of TAO's SDK on the lab: the variables of a script, and waiting for what becomes of a job."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from towline.lab import Lab
from towline.lab.layout import ALICE, LOGINS
from towline.tao.platforms.slurm import SlurmSDK

BASE = f"/lustre/{ALICE.name}/tao"
IMAGE = "/lustre/images/python.sqsh"
PATIENCE = 120.0
TERMINAL = ("Complete", "Error", "Canceled")


def variables_of(lab: Lab, folder: Path) -> dict[str, str]:
    """TAO's variables for the lab; what is known of the jobs is kept in the folder."""
    return {
        "SLURM_USER": ALICE.name,
        "SLURM_HOSTNAME": LOGINS[0].aliases[0],
        "SLURM_PARTITION": "batch",
        "SLURM_BASE_RESULTS_DIR": BASE,
        "SLURM_CPUS_PER_TASK": "1",
        "SLURM_TIME_HOURS": "0.1",
        "SLURM_USE_SQSH": "false",
        "SSH_KEY_PATH": str(lab.paths.key(ALICE)),
        "HF_TOKEN": "hf_sesame_open",
        "HOME": str(folder),
        "TOWLINE_STATE_DIR": str(folder / "state"),
        "TOWLINE_KNOWN_HOSTS_FILE": str(lab.paths.known_hosts),
    }


def until(there: Callable[[], object]) -> None:
    end = time.monotonic() + PATIENCE
    while not there():
        assert time.monotonic() < end, "it did not come"
        time.sleep(0.2)


def ended(sdk: SlurmSDK, job_id: str) -> str:
    until(lambda: sdk.get_job_status(job_id).status in TERMINAL)
    return sdk.get_job_status(job_id).status


def text_of(lab: Lab, path: str) -> str:
    return lab.run_on("login1", ["cat", path], check=True).stdout
