"""How much may be written, from what a cluster's tools say of disks and quotas."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from towline.slurm.scripts import filled
from towline.slurm.space import parse_space

DISK = "disk 1000000 5000 9000 nfs:/lustre /lustre /lustre/me\n"
OF_QUOTA = """\
quota Disk quotas for user me (uid 1000):
quota      Filesystem  blocks   quota   limit   grace   files   quota   limit   grace
quota      nfs:/home    99999*      1      10    none      12       0       0
quota      nfs:/lustre {user}
quota Disk quotas for group ml (gid 50): none
"""


@pytest.mark.parametrize(
    ("text", "kib", "files", "why"),
    [
        (DISK, 1_000_000, 5000, ""),
        (DISK, 1_000_001, 1, "976.6 MiB are to come, and the file system of /lustre/me has 976.6 MiB free"),
        (DISK, 1, 5001, "5001 files are to come, and the file system of /lustre/me can make 5000"),
        ("disk 1000000 0 0 a b /x", 1, 1, ""),  # inodes are made as they are needed
        ("disk - - - - - /x", 1 << 40, 1, ""),
        (f"{DISK}lfs user me /lustre 1000 0 2000 - 12 0 0 -", 1000, 5, ""),
        (
            f"{DISK}lfs user me /lustre 1000 0 2000 - 12 0 0 -",
            1001,
            5,
            "the quota of user me on /lustre: 1000 KiB of 2.0 MiB used, and 1001 KiB are to come",
        ),
        (f"{DISK}lfs group ml      /lustre [2000]* 0 2000 - 12 0 0 -", 1, 5, "group ml on /lustre: 2.0 MiB of 2.0 MiB"),
        (
            f"{DISK}lfs project 7 /lustre 1 0 0 - 12 0 13 -",
            1,
            2,
            "project 7 on /lustre: 12 of 13 files used, and 2 are",
        ),
        # A soft limit lets more be written as long as its grace period runs.
        (f"{DISK}lfs user me /lustre 1500* 1000 2000 6d23h59m58s 12 0 0 -", 400, 5, ""),
        (f"{DISK}lfs user me /lustre 1500* 1000 2000 expired 12 0 0 -", 1, 5, "1.5 MiB of 1000 KiB used"),
        # A long name puts the numbers on a line of their own, and the script joins them.
        (
            f"{DISK}lfs user me /lustre/a/very/long/path                   2000 0 2000 - 12 0 0 -",
            1,
            5,
            "2.0 MiB of 2.0",
        ),
        (DISK + OF_QUOTA.format(user="1000 0 2000 12 0 0"), 1000, 5, ""),
        (DISK + OF_QUOTA.format(user="1000 0 2000 12 0 0"), 1001, 5, "user me on nfs:/lustre: 1000 KiB of 2.0 MiB"),
        (DISK + OF_QUOTA.format(user="1500* 1000 2000 6days 12 10 20"), 1, 9, "12 of 20 files used, and 9 are to come"),
        (DISK + OF_QUOTA.format(user="1500* 1000 2000 23:59 12 10 20 none"), 1, 1, "12 of 10 files used"),
        (DISK + OF_QUOTA.format(user="1500* 1000 2000 none 12 0 0"), 1, 1, "1.5 MiB of 1000 KiB used"),
    ],
)
def test_what_does_not_fit_is_named_with_its_quota(text: str, kib: int, files: int, why: str) -> None:
    space = parse_space(f"noise\n{text}")
    assert space
    said = space.lacking(kib, files)
    assert why in said
    assert bool(why) == bool(said)


def test_what_is_full_is_told_and_nothing_else() -> None:
    space = parse_space(f"{DISK}lfs user me /l 1999 0 2000 - 12 0 99 -\nlfs group ml /l 5 0 2000 - 9 0 10 -")
    assert space
    assert space.tightest == "the quota of user me on /l: 2.0 MiB of 2.0 MiB used"
    full = parse_space("disk 100 7 9000 a b /x y")
    assert full
    assert full.tightest == ("the file system of /x y has 100 KiB free; the file system of /x y can make 7 files more")
    assert parse_space("") is None


def test_the_script_asks_what_is_there(tmp_path: Path) -> None:
    tools = tmp_path / "bin"
    tools.mkdir()
    said = "  /very/long/name\\n   1000 0 2000 - 12 0 0 -\\n"
    (tools / "lfs").write_text(f'#!/bin/sh\n[ "$1" = quota ] && printf "{said}" && [ "$3" = -u ]\n')
    (tools / "lfs").chmod(0o755)
    text = filled('. ./space.sh\nspace "$1"\n')

    def space(path: str) -> str:
        environment = {**os.environ, "PATH": f"{tools}:{os.environ['PATH']}"}
        return subprocess.run(
            ["sh", "-c", text, "sh", path], check=True, capture_output=True, text=True, env=environment
        ).stdout

    found = parse_space(space(f"{tmp_path}/not/there yet"))
    assert found
    assert found.path == str(tmp_path)
    assert found.free_kib
    assert [(quota.path, quota.used, quota.limit) for quota in found.quotas] == [("/very/long/name", 1000, 2000)]
    (tools / "lfs").write_text("#!/bin/sh\necho not on Lustre\nexit 1\n")
    (tools / "quota").write_text(
        f"#!/bin/sh\necho '/ 1 0 2 3 0 4'\necho \"$(df -P {tmp_path} | awk 'END {{ print $1 }}') 1 0 2 3 0 4\""
    )
    (tools / "quota").chmod(0o755)
    found = parse_space(space(str(tmp_path)))
    assert found
    assert [(quota.used, quota.limit, quota.files) for quota in found.quotas][:2] == [(1, 2, False), (3, 4, True)]
