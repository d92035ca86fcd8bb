"""Rows of the fault matrix: what happens to nodes, to Slurm's daemons and to the way there, and what a site forbids."""

from __future__ import annotations

import time

from harness.chaos.healing.play import Play, until
from harness.chaos.healing.table import Table
from harness.chaos.healing.words import XID_ONCE

TABLE = Table()
row = TABLE.row


# --- Nodes ---


@row("batch node crashes")
def _batch_node(play: Play) -> None:
    play.submit("--nodes", "2")
    play.fault("node-crash", play.hosts()[0])


@row("another node crashes")
def _other_node(play: Play) -> None:
    play.submit("--nodes", "2")
    play.fault("node-crash", play.hosts()[1])


@row("node is cut off and comes back")
def _cut(play: Play) -> None:
    play.submit()
    node = play.hosts()[0]
    play.fault("node-cut", node)
    play.started(2)
    play.mend("node-cut", node)


@row("cloud node does not boot", attempts=(1, 2, 3, 4))
def _boot(play: Play) -> None:
    play.fault("boot-fail")
    play.submit("--partition", "cloud", first=2)
    until(lambda: "PENDING" not in "".join(play.queued()) or "BeginTime" in "".join(play.queued()), "a boot has failed")
    play.mend("boot-fail")


@row("a prolog fails on a node", attempts=(1, 2))
def _prolog(play: Play) -> None:
    play.fault("prolog-fail", "node1")
    play.submit("--gpus", "8", first=2)
    if not play.alive:
        until(lambda: "held" in "".join(play.queued()), "the job is held")
        play.follow()


@row("GPU lost before the start", causes=("node",), short=True)
def _gpu_before(play: Play) -> None:
    play.fault("gpu-lost", "node1")
    play.submit("--gpus", "8", first=2)


@row("GPU lost while running (Xid in the log)", causes=("node",))
def _gpu_running(play: Play) -> None:
    play.submit("--gpus", "8", command=XID_ONCE)


@row("a container's hook fails on one node", causes=("node",))
def _hook(play: Play) -> None:
    play.fault("hook-fail", "node1")
    play.submit("--gpus", "8", "--image", "/lustre/images/busybox.sqsh", command="echo fine")


# --- The way there, and Slurm's daemons ---


@row("one login host is lost", attempts=(1,))
def _one_login(play: Play) -> None:
    play.submit(first=16)
    play.fault("login-down", "login1")


@row("both login hosts are lost for a minute", attempts=(1,))
def _both_logins(play: Play) -> None:
    play.submit(first=16)
    for host in ("login1", "login2"):
        play.fault("login-down", host)
    time.sleep(60)
    for host in ("login1", "login2"):
        play.mend("login-down", host)


@row("slurmctld is restarted", attempts=(1,))
def _controller(play: Play) -> None:
    play.submit(first=24)
    play.started()
    play.fault("slurmctld-down")
    time.sleep(5)
    play.mend("slurmctld-down")


@row("slurmdbd is away for two minutes", causes=("node",))
def _database(play: Play) -> None:
    play.fault("slurmdbd-down")
    play.submit(command=XID_ONCE)
    time.sleep(120)
    play.mend("slurmdbd-down")


@row("the cluster keeps no accounting", causes=("node",))
def _no_accounting(play: Play) -> None:
    play.fault("accounting-off")
    play.submit(command=XID_ONCE)


# --- What a site forbids ---


@row("JobRequeue=0", causes=("node",))
def _no_requeue(play: Play) -> None:
    play.fault("no-requeue")
    play.submit(command=XID_ONCE)


@row("no sbatch from nodes", causes=("node",))
def _no_sbatch(play: Play) -> None:
    play.fault("no-submit-from-nodes")
    play.submit(command=XID_ONCE)


@row("no scontrol on nodes", causes=("node",), short=True)
def _no_scontrol(play: Play) -> None:
    play.fault("no-scontrol-on-nodes")
    play.submit(command=XID_ONCE)


@row("neither on nodes: wanted", causes=("node",))
def _neither(play: Play) -> None:
    play.fault("no-scontrol-on-nodes")
    play.fault("no-submit-from-nodes")
    play.submit(command=XID_ONCE)
