"""Commands of jobs that the rows of the matrix share."""

XID = 'echo "NVRM: Xid (PCI:0000:1b:00): 79, pid=1, GPU has fallen off the bus." >&2; sleep 1; exit 1'
XID_ONCE = f'[ "$TOWLINE_ATTEMPT" -gt 1 ] || {{ {XID}; }}'
TRACEBACK = 'printf "Traceback (most recent call last):\\n  File \\"t.py\\", line 3\\nValueError: no\\n" >&2'
NCCL = 'echo "torch.distributed.DistBackendError: NCCL error in: ProcessGroupNCCL.cpp:1, ncclRemoteError" >&2'
TICK = 'date +%s%N >"$TOWLINE_RESULTS_DIR/ticks-$TOWLINE_ATTEMPT"'
RESUMES = (
    '[ "$TOWLINE_ATTEMPT" -lt 2 ] || exit 0; trap "echo x >\\"$TOWLINE_RESULTS_DIR/c.pt\\"; exit 1" TERM; '
    f"{TICK}; while :; do sleep 0.2; done"
)
ONE_MINUTE = ("--time", "1m", "--grace", "5s")
STARVES = (
    "g=$(echo /sys/fs/cgroup/memory/slurm_*/uid_*/job_$1/step_batch/task_0); "
    'for p in $(cat "$g/cgroup.procs"); do '
    '[ "$(cat "/proc/$p/comm")" != "$2" ] || echo 1000 >"/proc/$p/oom_score_adj"; '
    "done; "
    'echo $$ >"$g/cgroup.procs"; head -c 400M /dev/zero | timeout 20 tail >/dev/null; exit 0'
)
"""On the node of job `$1`, as root: joins its batch step and needs four times its memory; of what is there the kernel
then ends what is called `$2` first."""
