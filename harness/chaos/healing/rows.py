"""The rows of the fault matrix: what is broken, and what must have become of the job."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from harness.chaos.healing.play import Play, until
from towline.lab.kernel import has_cgroup_v1

XID = 'echo "NVRM: Xid (PCI:0000:1b:00): 79, pid=1, GPU has fallen off the bus." >&2; sleep 1; exit 1'
TRACEBACK = 'printf "Traceback (most recent call last):\\n  File \\"t.py\\", line 3\\nValueError: no\\n" >&2'
NCCL = 'echo "torch.distributed.DistBackendError: NCCL error in: ProcessGroupNCCL.cpp:1, ncclRemoteError" >&2'
RESUMES = (
    '[ "$TOWLINE_ATTEMPT" -lt 2 ] || exit 0; trap "echo x >\\"$TOWLINE_RESULTS_DIR/c.pt\\"; exit 1" TERM; '
    'date +%s%N >"$TOWLINE_RESULTS_DIR/ticks-1"; while :; do sleep 0.2; done'
)
ONE_MINUTE = ("--time", "1m", "--grace", "5s")


@dataclass(frozen=True)
class Row:
    """One fault.

    Attributes:
        name: the fault in a few words.
        play: does it.
        state: the state in which the job must end.
        attempts: how many attempts it may take.
        causes: classes of the attempts that failed, in order; None when any will do.
        short: whether it belongs to the short form that runs with the tests.
        needs_cgroups: whether it can be had only where control groups confine jobs.
    """

    name: str
    play: Callable[[Play], None]
    state: str
    attempts: tuple[int, ...]
    causes: tuple[str, ...] | None = None
    short: bool = False
    needs_cgroups: bool = False


ROWS: list[Row] = []


def row(
    name: str,
    state: str = "succeeded",
    attempts: Sequence[int] = (2,),
    causes: Sequence[str] | None = None,
    *,
    short: bool = False,
    needs_cgroups: bool = False,
) -> Callable[[Callable[[Play], None]], Callable[[Play], None]]:
    """Register a row."""

    def register(play: Callable[[Play], None]) -> Callable[[Play], None]:
        fits = None if causes is None else tuple(causes)
        ROWS.append(Row(name, play, state, tuple(attempts), fits, short, needs_cgroups))
        return play

    return register


def rows() -> list[Row]:
    """Those that can be had here."""
    return [each for each in ROWS if has_cgroup_v1() or not each.needs_cgroups]


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
    play.submit("--gpus", "8", command=f'[ "$TOWLINE_ATTEMPT" -gt 1 ] || {{ {XID}; }}')


@row("a container's hook fails on one node", causes=("node",))
def _hook(play: Play) -> None:
    play.fault("hook-fail", "node1")
    play.submit("--gpus", "8", "--image", "/lustre/images/busybox.sqsh", command="echo fine")


# --- The way there, and Slurm's daemons ---


@row("one login host is lost", attempts=(1,))
def _one_login(play: Play) -> None:
    play.submit(first=16)
    play.fault("login-down", "login1")


@row("both login hosts are lost for half a minute", attempts=(1,))
def _both_logins(play: Play) -> None:
    play.submit(first=16)
    for host in ("login1", "login2"):
        play.fault("login-down", host)
    time.sleep(30)
    for host in ("login1", "login2"):
        play.mend("login-down", host)


@row("slurmctld is restarted", attempts=(1,))
def _controller(play: Play) -> None:
    play.submit(first=24)
    play.started()
    play.fault("slurmctld-down")
    time.sleep(5)
    play.mend("slurmctld-down")


@row("slurmdbd is away", causes=("node",))
def _database(play: Play) -> None:
    play.fault("slurmdbd-down")
    play.submit(command=f'[ "$TOWLINE_ATTEMPT" -gt 1 ] || {{ {XID}; }}')
    time.sleep(40)
    play.mend("slurmdbd-down")


@row("the cluster keeps no accounting", causes=("node",))
def _no_accounting(play: Play) -> None:
    play.fault("accounting-off")
    play.submit(command=f'[ "$TOWLINE_ATTEMPT" -gt 1 ] || {{ {XID}; }}')


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


@row("a user's exception", "failed", (1,), ("user",), short=True)
def _exception(play: Play) -> None:
    play.submit(command=f"{TRACEBACK}; exit 1")


@row("a user's exception, and its echo on another rank", "failed", (1,), ("user",))
def _echo(play: Play) -> None:
    rank = f'if [ "$SLURM_PROCID" = 0 ]; then {TRACEBACK}; sleep 1; exit 1; else {NCCL}; sleep 0.2; exit 1; fi'
    play.submit("--nodes", "2", command=rank)


@row("exit code 1 and an empty log", "failed", (4,), ("ambiguous",) * 4)
def _empty(play: Play) -> None:
    play.submit(command="exit 1")


# --- What a site forbids ---


@row("JobRequeue=0", causes=("node",))
def _no_requeue(play: Play) -> None:
    play.fault("no-requeue")
    play.submit(command=f'[ "$TOWLINE_ATTEMPT" -gt 1 ] || {{ {XID}; }}')


@row("no sbatch from nodes", causes=("node",))
def _no_sbatch(play: Play) -> None:
    play.fault("no-submit-from-nodes")
    play.submit(command=f'[ "$TOWLINE_ATTEMPT" -gt 1 ] || {{ {XID}; }}')


@row("no scontrol on nodes", causes=("node",), short=True)
def _no_scontrol(play: Play) -> None:
    play.fault("no-scontrol-on-nodes")
    play.submit(command=f'[ "$TOWLINE_ATTEMPT" -gt 1 ] || {{ {XID}; }}')


@row("neither on nodes: wanted", causes=("node",))
def _neither(play: Play) -> None:
    play.fault("no-scontrol-on-nodes")
    play.fault("no-submit-from-nodes")
    play.submit(command=f'[ "$TOWLINE_ATTEMPT" -gt 1 ] || {{ {XID}; }}')


# --- Cancel ---


@row("cancelled while pending", "cancelled", (1,))
def _cancel_pending(play: Play) -> None:
    play.submit("--begin", "+1h")
    play.towline("cancel", play.job["id"])


@row("cancelled while running", "cancelled", (1,))
def _cancel_running(play: Play) -> None:
    play.submit()
    play.started()
    play.towline("cancel", play.job["id"])


@row("cancelled while being requeued", "cancelled", (1, 2))
def _cancel_requeued(play: Play) -> None:
    play.submit(command=f'date +%s%N >"$TOWLINE_RESULTS_DIR/ticks-$TOWLINE_ATTEMPT"; {XID}')
    until(lambda: bool(play.read("attempts/1/decision")), "it is decided")
    play.towline("cancel", play.job["id"])


@row("cancelled between two attempts", "cancelled", (1, 2))
def _cancel_between(play: Play) -> None:
    play.fault("no-scontrol-on-nodes")
    play.fault("no-submit-from-nodes")
    play.submit(command=f'date +%s%N >"$TOWLINE_RESULTS_DIR/ticks-$TOWLINE_ATTEMPT"; {XID}')
    until(lambda: bool(play.read("attempts/1/wanted")), "it is wanted")
    play.towline("cancel", play.job["id"])


# --- Disk and monitor ---


@row("the shared disk is full for a while", "failed", (1, 2, 3, 4, 5), None)
def _disk(play: Play) -> None:
    play.submit(command='sleep 8; echo "OSError: [Errno 28] No space left on device" >&2; exit 1')
    until(lambda: bool(play.read("attempts/1/start")), "it runs")
    play.fault("disk-full")
    time.sleep(12)
    play.mend("disk-full")


@row("the monitor is killed while the job runs, and while it waits", causes=("node",))
def _monitor(play: Play) -> None:
    play.submit(command=f'[ "$TOWLINE_ATTEMPT" -gt 1 ] || {{ sleep 5; {XID}; }}')
    for moment in ("attempts/1/start", "attempts/1/decision"):
        until(lambda name=moment: bool(play.read(name)), moment)
        if play.waiter:
            play.waiter.send_signal(signal.SIGKILL)
            play.waiter.communicate()
            play.follow()
