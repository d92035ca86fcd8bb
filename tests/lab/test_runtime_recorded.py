"""Every command recorded with the real Pyxis and Enroot, given again on the lab: same exit status, same words."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.lab.login import SECONDS
from towline.lab import Lab

RECORD = Path(__file__).parent / "recorded" / "pyxis-0.24-enroot-4.1.txt"
RECORDED_FOLDER, FOLDER = "/lustre/alice", "/lustre/alice/recorded"
IMAGE = "/lustre/images/busybox.sqsh"
CREDENTIALS = "/home/alice/.config/enroot/.credentials"
PATIENCE = SECONDS + 30
"""Two of the commands wait 10 s for a name server that is not there."""


@dataclass(frozen=True)
class Case:
    """A command, what it printed, how it ended."""

    title: str
    command: str
    output: tuple[str, ...]
    status: int


def _read_cases() -> list[Case]:
    """The record: `=== TITLE`, `$ COMMAND`, what was printed, `[exit status N, TIME]`."""
    text = RECORD.read_text().replace("/lustre/images/bb.sqsh", IMAGE).replace(f"{RECORDED_FOLDER}/", f"{FOLDER}/")
    cases: list[Case] = []
    for block in text.split("\n=== ")[1:]:
        title, command, *rest = block.rstrip("\n").split("\n")
        ended = re.fullmatch(r"\[exit status (\d+), [\d.]+s\]", rest[-1])
        assert ended is not None, title
        cases.append(Case(title, command.removeprefix("$ "), tuple(rest[:-1]), int(ended[1])))
    return cases


CASES = _read_cases()

# What differs between two runs of the same command.
CHANGING = [
    (r"\bnode\d\b", "NODE"),
    (r"\bchild \d+\b", "child PID"),
    (r"\bpyxis_\d+_", "pyxis_JOB_"),
    (r"_\d+\.(?:\d+)\b", "_JOB.STEP"),
    (r"\bafter \d+ ms\b", "after TIME"),
    (r"^Submitted batch job \d+", "Submitted batch job JOB"),
    (r"\bUsing \d+ processors\b", "Using N processors"),
    (r"^(slurmstepd-NODE: error: pyxis:     )\d+ inodes \(\d+ blocks\)", r"\1N inodes (N blocks)"),
    (r"^(slurmstepd-NODE: error: pyxis:     created) \d+ ", r"\1 N "),
]
WAITING = re.compile(r"srun: job \d+ (?:queued and waiting for|has been allocated) resources")
STATISTICS = re.compile(
    r"\t|$|(?:Parallel|Creating|Exportable|Filesystem size|Inode table|Directory table|Number of) ?"
)
"""What mksquashfs says of a file system it makes, which depends on the image."""
TAR = "tar: Removing leading `/' from member names"
"""Of an image whose layers have absolute names."""


def words(lines: tuple[str, ...] | list[str]) -> list[str]:
    """The lines without what changes; sorted, since the order of srun's own among the others is a matter of chance."""
    kept: list[str] = []
    for line in lines:
        if WAITING.fullmatch(line) or STATISTICS.match(line) or line == TAR:
            continue
        for pattern, word in CHANGING:
            line = re.sub(pattern, word, line)
        kept.append(line)
    return sorted(kept)


# What a case needs beside the files of `folder`, by words of its title.
IMPORT = "enroot import -o z.sqsh docker://registry.lab:5000#demo:latest >/dev/null 2>&1"
NEEDS = {
    "enroot import: bad URI (slash instead of #)": f"{IMPORT}; rm z.sqsh",
    "enroot import: bad credentials": "touch z.sqsh",
}


@pytest.fixture(scope="module")
def folder(lab: Lab) -> None:
    """Alice's folder with the files the recorded commands are about."""
    script = (
        f"rm -rf {FOLDER}; mkdir -p {FOLDER} ~/.config/enroot; cd {FOLDER}; touch x.sqsh empty.sqsh;"
        f" head -c 4096 /dev/urandom >notsq.sqsh; head -c 300000 {IMAGE} >trunc.sqsh;"
        f" cp {IMAGE} noperm.sqsh; chmod 000 noperm.sqsh"
    )
    assert lab.run_on("login1", ["sh", "-c", script], user="alice").returncode == 0


@pytest.fixture
def prepared(lab: Lab, folder: None, case: Case) -> Case:
    """The case with its needs met; the password file is there when the title speaks of credentials that were given."""
    del folder
    password = lab.paths.registry_password.read_text().strip() if "good credentials" in case.title else "wrong"
    has_credentials = "credentials" in case.title and "none given" not in case.title
    line = f"machine registry.lab login puller password {password}\n" if has_credentials else ""
    script = f"umask 077; cat >{CREDENTIALS}; [ -s {CREDENTIALS} ] || rm {CREDENTIALS}; cd {FOLDER}; rm -f z.sqsh c-*;"
    assert lab.run_on("login1", ["sh", "-c", script], user="alice", stdin=line).returncode == 0
    need = f"cd {FOLDER}; {NEEDS.get(case.title, ':')}"
    assert lab.run_on("login1", ["sh", "-c", need], user="alice").returncode == 0
    return case


@pytest.mark.parametrize("case", CASES, ids=[case.title for case in CASES])
def test_it_ends_as_recorded(lab: Lab, prepared: Case) -> None:
    limits = "export SLURM_TIMELIMIT=2 SBATCH_TIMELIMIT=2 SLURM_JOB_NAME=labtest-recorded"
    script = f'cd {FOLDER}; {limits}; exec timeout {PATIENCE - 10} sh -c "$1" 2>&1'
    done = lab.run_on("login1", ["sh", "-c", script, "sh", prepared.command], user="alice", timeout=PATIENCE)
    assert words(done.stdout.splitlines()) == words(prepared.output)
    assert done.returncode == prepared.status


def test_every_recorded_command_is_given() -> None:
    assert len(CASES) == RECORD.read_text().count("[exit status ")
    assert len({case.title for case in CASES}) == len(CASES)
