"""slurmdbd and what is recorded in it: the cluster, an account, an association, QOS."""

from __future__ import annotations

from pathlib import Path

from towline.lab import namespaces
from towline.lab.daemons import Daemon, answers
from towline.lab.errors import LabError
from towline.lab.layout import CTL, USERS, Layout

SLURMDBD = Daemon(
    "slurmdbd", CTL, lambda _: ["slurmdbd"], "slurmdbd.log", lambda _: answers(CTL.address, 6819), user="slurm"
)

_MEMBERS = [user for user in USERS if user.account]
_RECORDS = [
    "add cluster lab",
    # `limited` is for being told to wait; `long` may outlast a partition's time limit.
    "add qos limited MaxTRESPerUser=gres/gpu=4 MaxJobsPerUser=2 MaxSubmitJobsPerUser=8",
    "add qos long MaxWall=2-00:00:00 Flags=PartitionTimeLimit",
    *(f"add account {user.account} Cluster=lab Organization=lab" for user in _MEMBERS),
    *(
        f"add user {user.name} Account={user.account} Cluster=lab QOS=normal,limited,long DefaultQOS=normal"
        for user in _MEMBERS
    ),
]


def check(layout: Layout) -> str:
    """What is wrong; empty when slurmdbd answers and its records have been made."""
    return SLURMDBD.check(layout) or ("" if _done(layout) else "the records are not made")


def start(layout: Layout) -> None:
    """Start slurmdbd and make the records that are missing."""
    if SLURMDBD.check(layout):
        SLURMDBD.start(layout)
    if not _done(layout):
        for record in _RECORDS:
            _add(layout, record)
        _mark(layout).touch()


def _add(layout: Layout, record: str) -> None:
    done = namespaces.run(layout, CTL, ["sacctmgr", "-i", *record.split()], check=False)
    said = done.stdout + done.stderr
    if done.returncode != 0 and "already exist" not in said and "Nothing new added" not in said:
        raise LabError(f"`sacctmgr {record}` failed.", why=said.strip())


def _mark(layout: Layout) -> Path:
    return layout.state / "mysql" / "lab-records"


def _done(layout: Layout) -> bool:
    return _mark(layout).exists()
