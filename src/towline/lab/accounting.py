"""slurmdbd and what is recorded in it: the cluster, an account, an association, QOS."""

from __future__ import annotations

from pathlib import Path

from towline.lab import namespaces, process
from towline.lab.daemons import Daemon, answers
from towline.lab.errors import LabError
from towline.lab.layout import CTL, USERS, Layout

SLURMDBD = Daemon(
    "slurmdbd", CTL, lambda _: ["slurmdbd"], "slurmdbd.log", lambda _: answers(CTL.address, 6819), user="slurm"
)

DEFAULT_QOS = "normal"

_MEMBERS = [user for user in USERS if user.account]
_RECORDS = [
    # `limited` is for being told to wait; `long` may outlast a partition's time limit.
    "add qos limited MaxTRESPerUser=gres/gpu=4 MaxJobsPerUser=2 MaxSubmitJobsPerUser=8",
    "add qos long MaxWall=2-00:00:00 Flags=PartitionTimeLimit",
    *(f"add account {user.account} Cluster=lab Organization=lab" for user in _MEMBERS),
    *(
        f"add user {user.name} Account={user.account} Cluster=lab QOS={DEFAULT_QOS},limited,long"
        f" DefaultQOS={DEFAULT_QOS}"
        for user in _MEMBERS
    ),
]


def start(layout: Layout) -> None:
    """Start slurmdbd and make the cluster known to it, without which slurmctld would not start."""
    SLURMDBD.start(layout)
    _add(layout, "add cluster lab")


def check_records(layout: Layout) -> str:
    """What is wrong; empty when the records have been made."""
    return "" if _mark(layout).exists() else "not made"


def make_records(layout: Layout) -> None:
    """Make the records that are missing. slurmctld must be up: it is what tells slurmdbd that there are GPUs to limit.

    Raises:
        LabError: slurmdbd refused one.
    """
    process.until(lambda: _knows_gpus(layout), 30, "slurmctld's registration with slurmdbd")
    for record in _RECORDS:
        _add(layout, record)
    _mark(layout).touch()


def _knows_gpus(layout: Layout) -> bool:
    done = namespaces.run(layout, CTL, ["sacctmgr", "-n", "-P", "show", "tres", "format=type,name"], check=False)
    return "gres|gpu" in done.stdout.split()


def _add(layout: Layout, record: str) -> None:
    done = namespaces.run(layout, CTL, ["sacctmgr", "-i", *record.split()], check=False)
    said = done.stdout + done.stderr
    if done.returncode != 0 and "already exist" not in said and "Nothing new added" not in said:
        raise LabError(f"`sacctmgr {record}` failed.", why=said.strip())


def _mark(layout: Layout) -> Path:
    """Beside the records themselves: both go when the database is made anew."""
    return layout.state / "mysql" / "lab-records"
