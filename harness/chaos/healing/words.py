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
