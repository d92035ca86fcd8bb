"""How long GPUs are held before they are used: from the start of an allocation to the user's command on every node."""

from __future__ import annotations

import statistics
import subprocess
import tempfile
import time
from pathlib import Path

from harness.bench.registry import Reading, benchmark
from harness.lab import TOWLINE, lab_environment
from harness.store import Store, open_store
from towline.lab import Lab
from towline.lab.layout import ALICE

ROUNDS = 3
IMAGE = "registry.lab:5000/demo:latest"


@benchmark("allocation-to-command", unit="s", limit=3.0)
def allocation_to_command() -> Reading:
    """From the start of a two-node allocation to the command, with an image and an s3:// input that were nowhere yet.

    Slurm tells starts in whole seconds, so that up to a second of each value is not there.
    """
    with tempfile.TemporaryDirectory() as scratch, lab_environment(Path(scratch, "state")) as env:
        lab = Lab.default()
        store = open_store(lab)
        for number in range(8):
            store.put(f"set/{number}.bin", bytes(1 << 20))
        rounds = [_round(lab, env, store, f"/lustre/{ALICE.name}/bench-{number}") for number in range(ROUNDS)]
    parts = {name: statistics.median(each[name] for each in rounds) for name in rounds[0]}
    return Reading(parts["to_command_s"], {**parts, "rounds": ROUNDS})


def _round(lab: Lab, env: dict[str, str], store: Store, place: str) -> dict[str, float]:
    own = {"TOWLINE_IMAGE_CACHE": f"{place}/images", "TOWLINE_DATA_CACHE": f"{place}/data", **store.environment}
    wanted = ["--nodes", "2", "--gpus-per-node", "1", "--time", "2m", "--image", IMAGE]
    data = ["--input", f"/data=s3://{store.bucket}/set", "--secret", "ACCESS_KEY", "--secret", "SECRET_KEY"]
    first = int(_alice(lab, "scontrol show config | sed -n 's/^NEXT_JOB_ID *= *//p'"))
    command = [TOWLINE, "run", *wanted, *data, "--", "cat", "/proc/uptime"]
    ran = subprocess.run(command, env={**env, **own}, check=True, capture_output=True, text=True)
    _alice(lab, f"rm -rf {place}")
    shown = _alice(lab, "SLURM_TIME_FORMAT=%s sacct -X -n -P -S now-1hours --format=JobIDRaw,Partition,Start,End")
    rows = [line.split("|") for line in shown.splitlines()]
    mine = [(part, int(start), int(end)) for job, part, start, end in rows if int(job) >= first]
    ready = max(end for part, _, end in mine if part == "cpu")
    (start,) = (start for part, start, _ in mine if part == "batch")
    if ready > start:
        raise SystemExit(f"the allocation began at {start}, and what it needs was ready at {ready}")
    # The image's date(1) knows whole seconds only; all hosts of the lab have this machine's clock.
    booted = time.time() - time.clock_gettime(time.CLOCK_BOOTTIME)
    commands = [booted + float(line.split()[0]) for line in ran.stdout.splitlines()]
    return {"to_command_s": max(commands) - start, "ready_to_start_s": float(start - ready)}


def _alice(lab: Lab, script: str) -> str:
    return lab.run_on("login1", ["sh", "-c", script], user=ALICE.name, check=True).stdout.strip()
