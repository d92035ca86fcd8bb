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
    """A process that has the SDK open and does what it is asked."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def submit(self, command: str = "true") -> str:
        """One job; returns its id when Slurm has it."""
        return self.ask(f"submit {command}")

    def ask(self, line: str) -> str:
        """The answer to `submit COMMAND`, `status JOB`, `logs JOB` or `cancel JOB`."""
        assert self._process.stdin
        assert self._process.stdout
        print(line, file=self._process.stdin, flush=True)
        if not (answer := self._process.stdout.readline().rstrip("\n")):
            raise SystemExit(f"the SDK did not do {line!r}")
        return answer


@contextmanager
def submitter(lab: Lab, scratch: Path) -> Generator[Submitter]:
    """NVIDIA's SDK with everything in place that it does not make itself (known faults): its folders, an account."""
    lab.run_on("login1", ["mkdir", "-p", *(f"{BASE}/{name}" for name in FOLDERS)], user=ALICE.name, check=True)
    with _running([str(python()), str(SUBMITTER)], _variables(lab, scratch / "theirs", BASE)) as found:
        yield found


@contextmanager
def ours(lab: Lab, scratch: Path) -> Generator[Submitter]:
    """The same script, for which `tao_sdk` is Towline."""
    env = {
        **_variables(lab, scratch / "ours", f"{BASE}-ours"),
        "TOWLINE_STATE_DIR": str(scratch / "state-of-ours"),
        "TOWLINE_CONFIG_DIR": str(scratch / "no-config"),
        "TOWLINE_KNOWN_HOSTS_FILE": str(lab.paths.known_hosts),
        "XDG_RUNTIME_DIR": str(scratch),
    }
    with _running([sys.executable, "-m", "towline.tao.script", str(SUBMITTER)], env) as found:
        yield found


def _variables(lab: Lab, home: Path, base: str) -> dict[str, str]:
    home.mkdir()
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "TAO_SDK_STATE_DIR": str(home / "tao-state"),
        "SLURM_USER": ALICE.name,
        "SLURM_HOSTNAME": LOGINS[0].aliases[0],
        "SLURM_PARTITION": "batch",
        "SLURM_ACCOUNT": "research",
        "SLURM_BASE_RESULTS_DIR": base,
        "SLURM_CPUS_PER_TASK": "1",
        "SLURM_USE_SQSH": "false",
        "SSH_KEY_PATH": str(lab.paths.key(ALICE)),
    }


@contextmanager
def _running(argv: list[str], env: dict[str, str]) -> Generator[Submitter]:
    with subprocess.Popen(
        argv, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=sys.stderr, text=True
    ) as process:
        assert process.stdin
        try:
            yield Submitter(process)
        finally:
            process.stdin.close()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
