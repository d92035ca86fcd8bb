"""nvidia-tao-sdk, in an environment of its own beside the project: what submissions are compared with."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from towline.lab import Lab
from towline.lab.layout import ALICE, LOGINS

ROOT = Path(__file__).parents[2]
PLACE = ROOT / ".bench" / "tao"
WANTED = Path(__file__).with_name("requirements-tao.txt")
SUBMITTER = Path(__file__).with_name("tao_submitter.py")
BASE = "/lustre/alice/tao"
FOLDERS = ("specs", "env", "meta", "entrypoints", "sbatch", "slurm-logs", "results")


def python() -> Path:
    """The interpreter of the SDK's environment, which is made from nothing when it is not what is wanted."""
    mark = PLACE / "in-step"
    if not mark.exists() or mark.read_text() != WANTED.read_text():
        uv = str(ROOT / ".uv" / "bin" / "uv")
        subprocess.run([uv, "venv", "--quiet", "--clear", "--python", "/usr/bin/python3", str(PLACE)], check=True)
        target = ["--python", str(PLACE / "bin" / "python")]
        subprocess.run([uv, "pip", "install", "--quiet", *target, "--require-hashes", "-r", str(WANTED)], check=True)
        mark.write_text(WANTED.read_text())
    return PLACE / "bin" / "python"


class Submitter:
    """A process that has the SDK open and submits a job each time it is asked."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def submit(self) -> None:
        """One job; returns when Slurm has it."""
        assert self._process.stdin
        assert self._process.stdout
        print("go", file=self._process.stdin, flush=True)
        if (answer := self._process.stdout.readline()) != "done\n":
            raise SystemExit(f"the SDK did not submit: {answer}")


@contextmanager
def submitter(lab: Lab, scratch: Path) -> Generator[Submitter]:
    """The SDK with everything in place that it does not make itself (known faults): its folders, an account."""
    lab.run_on("login1", ["mkdir", "-p", *(f"{BASE}/{name}" for name in FOLDERS)], user=ALICE.name, check=True)
    (scratch / "home").mkdir()
    env = {
        "PATH": os.environ["PATH"],
        "HOME": str(scratch / "home"),
        "TAO_SDK_STATE_DIR": str(scratch / "tao-state"),
        "SLURM_USER": ALICE.name,
        "SLURM_HOSTNAME": LOGINS[0].aliases[0],
        "SLURM_PARTITION": "batch",
        "SLURM_ACCOUNT": "research",
        "SLURM_BASE_RESULTS_DIR": BASE,
        "SLURM_USE_SQSH": "false",
        "SSH_KEY_PATH": str(lab.paths.key(ALICE)),
    }
    argv = [str(python()), str(SUBMITTER)]
    with subprocess.Popen(
        argv, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=sys.stderr, text=True
    ) as process:
        assert process.stdin
        try:
            yield Submitter(process)
        finally:
            process.stdin.close()
            process.kill()
