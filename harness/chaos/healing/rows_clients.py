"""Rows of the fault matrix: what clients do, and what is done to them."""

from __future__ import annotations

import time

from harness.chaos.healing.play import Play, Unmet, until
from harness.chaos.healing.table import Table
from harness.chaos.healing.words import TICK, XID, XID_ONCE

TABLE = Table()
row = TABLE.row


# --- Cancel, in each moment ---


@row("cancelled while nobody knows whether Slurm has it", "cancelled", (1,), clients="nobody")
def _cancel_unknown(play: Play) -> None:
    play.fault("slurmctld-slow", "4000")
    play.submit_and_die()
    play.mend("slurmctld-slow", "4000")
    play.cancel()
    time.sleep(5)  # what was on its way would be there now
    if queued := play.queued():
        raise Unmet(f"Slurm has {queued} of it after all")


@row("cancelled while pending", "cancelled", (1,))
def _cancel_pending(play: Play) -> None:
    play.submit("--begin", "+1h")
    play.cancel()


@row("cancelled while running", "cancelled", (1,))
def _cancel_running(play: Play) -> None:
    play.submit()
    play.started()
    play.cancel()


@row("cancelled in the moment of its requeue", "cancelled", (1, 2))
def _cancel_requeued(play: Play) -> None:
    play.submit(command=f"{TICK}; {XID}")
    until(lambda: bool(play.read("attempts/1/decision")), "it is decided")
    play.cancel()


@row("cancelled while it waits after its requeue", "cancelled", (2,), ("node",))
def _cancel_put_back(play: Play) -> None:
    play.submit(command=f"{TICK}; {XID}")
    until(lambda: "PENDING" in "".join(play.queued()) and bool(play.read("attempts/2/submit")), "it waits again")
    play.cancel()


@row("cancelled between two attempts", "cancelled", (1, 2))
def _cancel_between(play: Play) -> None:
    play.fault("no-scontrol-on-nodes")
    play.fault("no-submit-from-nodes")
    play.submit(command=f"{TICK}; {XID}")
    until(lambda: bool(play.read("attempts/1/wanted")), "it is wanted")
    play.cancel()


@row("cancelled twice", "cancelled", (1,))
def _cancel_twice(play: Play) -> None:
    play.submit()
    play.started()
    play.cancel()
    play.cancel()


@row("cancelled after its end", "succeeded", (1,), ())
def _cancel_ended(play: Play) -> None:
    play.submit(first=2)
    until(lambda: bool(play.read("attempts/1/end")) and not play.queued(), "it has ended")
    play.cancel()


@row("cancelled after Slurm has forgotten it", "succeeded", (1,), ())
def _cancel_purged(play: Play) -> None:
    play.fault("accounting-off")
    play.fault("min-job-age", "2")
    play.submit(first=2)
    until(lambda: bool(play.read("attempts/1/end")), "it has ended")
    until(lambda: "Invalid job id" in play.ask(f"scontrol show job {play.slurm_id()} 2>&1"), "Slurm has forgotten it")
    play.cancel()


@row("cancelled by a machine that has not seen it before", "cancelled", (1,))
def _cancel_elsewhere(play: Play) -> None:
    play.submit()
    play.started()
    play.towline("adopt", elsewhere=True)
    play.cancel(elsewhere=True)


# --- The monitor ---


@row(
    "the monitor is killed in each phase: waiting, starting, running, decided, put back, running again, ended",
    causes=("node",),
    clients="there",
)
def _monitor(play: Play) -> None:
    play.submit("--begin", "+8s", command=f'{TICK}; [ "$TOWLINE_ATTEMPT" = 1 ] || sleep 4; {XID_ONCE}')
    for moment in ("job.json", "attempts/1/start", "results/ticks-1", "attempts/1/decision", "attempts/2/submit",
                   "results/ticks-2", "attempts/2/end"):  # fmt: skip
        until(lambda name=moment: bool(play.read(name)), moment)
        play.kill_client()


@row("the monitor is killed while it starts the next attempt, which nobody else may", causes=("node",), clients="there")
def _monitor_starting(play: Play) -> None:
    play.fault("no-scontrol-on-nodes")
    play.fault("no-submit-from-nodes")
    play.fault("slurmctld-slow", "1500")
    play.submit(command=f"{TICK}; {XID_ONCE}")
    until(lambda: bool(play.read("attempts/1/wanted")), "it is wanted")
    until(lambda: play.exists("attempts/2"), "the next attempt is claimed")
    play.kill_client()
    play.mend("slurmctld-slow", "1500")
