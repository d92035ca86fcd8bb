#!/bin/sh
# Runs once on each node of a job, outside of any container: check GPUS DIRECTORY
#
# Writes DIRECTORY/<node>: `ok`, or what is wrong with the node's GPUs. Where there is no nvidia-smi nothing can be asked.
set -u
umask 077
tl_wanted=$1 tl_answers=$2 tl_node=${SLURMD_NODENAME:-$(uname -n)}

say() {
    printf '%s\n' "$1" >"$tl_answers/.$tl_node" && mv -f "$tl_answers/.$tl_node" "$tl_answers/$tl_node"
}

command -v nvidia-smi >/dev/null 2>&1 || {
    say ok
    exit 0
}
# A driver that hangs is as bad as one that fails.
if command -v timeout >/dev/null 2>&1; then
    tl_said=$(timeout 60 nvidia-smi -L 2>&1 </dev/null)
else
    tl_said=$(nvidia-smi -L 2>&1 </dev/null)
fi
tl_code=$?
# `GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-…)`
tl_found=$(printf '%s\n' "$tl_said" | grep -c '^GPU [0-9]')
tl_other=$(printf '%s\n' "$tl_said" | grep -v '^GPU [0-9]' | head -n 1 | tr -cd '[:print:]' | cut -c 1-200)
if [ "$tl_code" -eq 124 ]; then
    say 'nvidia-smi does not answer'
elif [ "$tl_code" -ne 0 ]; then
    say "nvidia-smi failed with exit code $tl_code${tl_other:+: $tl_other}"
elif [ "$tl_found" -lt "$tl_wanted" ]; then
    say "$tl_found of the $tl_wanted GPUs are there${tl_other:+: $tl_other}"
else
    say ok
fi
