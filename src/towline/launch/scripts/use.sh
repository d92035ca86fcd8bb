#!/bin/sh
# Runs once on each node of a job that shows no other sign of life: use DIRECTORY SECONDS PAUSE
#
# Looks at the node's GPUs every PAUSE seconds and writes DIRECTORY/<node>: `busy` once one is in use, and ends then; `idle`
# when none was so far, and where nobody can tell (no nvidia-smi, a driver that does not answer, parts of a GPU).
set -u
umask 077
tl_answer=$1/${SLURMD_NODENAME:-$(uname -n)} tl_left=$2 tl_pause=$3

say() {
    printf '%s\n' "$1" >"$tl_answer"
}

# Where control groups show a job its own GPUs only, they are counted from 0 here as well.
ask() {
    if command -v timeout >/dev/null 2>&1; then set -- timeout 30 "$@"; fi
    "$@" ${CUDA_VISIBLE_DEVICES:+-i "$CUDA_VISIBLE_DEVICES"} --query-gpu=utilization.gpu --format=csv,noheader,nounits \
        2>/dev/null </dev/null
}

say idle
command -v nvidia-smi >/dev/null 2>&1 || exit 0
while [ "$tl_left" -gt 0 ]; do
    if ask nvidia-smi | grep -q '^ *[1-9]'; then
        say busy
        exit 0
    fi
    sleep "$tl_pause"
    tl_left=$((tl_left - tl_pause))
done
