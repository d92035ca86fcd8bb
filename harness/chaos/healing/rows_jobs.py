"""Rows of the fault matrix: preemption, walltime, and what programs do."""

from __future__ import annotations

import time

from harness.chaos.healing.play import Play, until
from harness.chaos.healing.table import Table
from harness.chaos.healing.words import NCCL, ONE_MINUTE, RESUMES, STARVES, TRACEBACK

TABLE = Table()
row = TABLE.row


# --- Preemption and walltime ---


def _preempt(play: Play) -> None:
    play.started()
    nodes = play.ask("sinfo -h -p urgent -o %D").strip()
    command = f"sbatch --parsable -J chaos-urgent -o /dev/null -p urgent -N{nodes} --exclusive --wrap 'sleep 8'"
    urgent = play.ask(command).strip()
    play.undo.callback(play.ask, f"scancel {urgent}")


@row("preempted by cancel")
def _preempt_cancel(play: Play) -> None:
    play.submit("--partition", "low")
    _preempt(play)


@row("preempted by requeue")
def _preempt_requeue(play: Play) -> None:
    play.submit("--partition", "low_requeue")
    _preempt(play)


@row("walltime, and the job can resume", causes=("time",))
def _walltime(play: Play) -> None:
    play.submit(*ONE_MINUTE, "--checkpoints", "*.pt", command=RESUMES)


@row("walltime, and it cannot", "failed", (1,), ("time",))
def _walltime_end(play: Play) -> None:
    play.submit("--time", "1m")


# --- What programs do ---


@row("out of memory in a step", "failed", (1,), ("memory",), needs_cgroups=True)
def _memory(play: Play) -> None:
    play.submit("--memory", "100M", command="tail -c 400M /dev/zero | tail")


def _starve(play: Play, victim: str) -> None:
    """Have something fill the memory of the batch step, and the kernel end `victim` of what runs there."""
    node = play.hosts()[0]
    play.lab.run_on(node, ["sh", "-c", STARVES, "sh", play.slurm_id(), victim], check=True)


@row("out of memory in the batch step: the kernel ends the script", "failed", (1,), ("memory",), needs_cgroups=True)
def _memory_of_script(play: Play) -> None:
    play.submit("--memory", "100M")
    _starve(play, "sh")


@row("out of memory in the batch step: the kernel ends srun", "failed", (1,), ("memory",), needs_cgroups=True)
def _memory_of_srun(play: Play) -> None:
    play.submit("--memory", "100M")
    _starve(play, "srun")


@row("out of memory in the batch step, and the command is done all the same", attempts=(1,), needs_cgroups=True)
def _memory_beside(play: Play) -> None:
    play.submit("--memory", "100M", first=12)
    _starve(play, "tail")


@row("a user's exception", "failed", (1,), ("user",), short=True)
def _exception(play: Play) -> None:
    play.submit(command=f"{TRACEBACK}; exit 1")


@row("a user's exception, and its echo on another rank", "failed", (1,), ("user",))
def _echo(play: Play) -> None:
    told = '"$TOWLINE_RESULTS_DIR/told"'
    first = f"{TRACEBACK}; : >{told}; sleep 1; exit 1"
    other = f"until [ -e {told} ]; do sleep 0.1; done; {NCCL}; sleep 0.2; exit 1"
    rank = f'if [ "$SLURM_PROCID" = 0 ]; then {first}; else {other}; fi'
    play.submit("--nodes", "2", command=rank)


@row("exit code 1 and an empty log", "failed", (4,), ("ambiguous",) * 4)
def _empty(play: Play) -> None:
    play.submit(command="exit 1")


# --- Disk ---


@row("the shared disk is full for a while", "failed", (1, 2, 3, 4, 5), None)
def _disk(play: Play) -> None:
    play.submit(command='sleep 8; echo "OSError: [Errno 28] No space left on device" >&2; exit 1')
    until(lambda: bool(play.read("attempts/1/start")), "it runs")
    play.fault("disk-full")
    time.sleep(12)
    play.mend("disk-full")
