#!/bin/sh
# Runs once on each node of a job, outside of any container: check GPUS DIRECTORY
#
# Writes DIRECTORY/<node>: `ok`, or what is wrong with the node's GPUs. Where there is no nvidia-smi nothing can be asked.
set -u
umask 077
wanted=$1 answers=$2 node=${SLURMD_NODENAME:-$(uname -n)}

say() {
    printf '%s\n' "$1" >"$answers/.$node" && mv -f "$answers/.$node" "$answers/$node"
}

command -v nvidia-smi >/dev/null 2>&1 || {
    say ok
    exit 0
}
# A driver that hangs is as bad as one that fails.
if command -v timeout >/dev/null 2>&1; then
    said=$(timeout 60 nvidia-smi -L 2>&1 </dev/null)
else
    said=$(nvidia-smi -L 2>&1 </dev/null)
fi
code=$?
# `GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-…)`
found=$(printf '%s\n' "$said" | grep -c '^GPU [0-9]')
other=$(printf '%s\n' "$said" | grep -v '^GPU [0-9]' | head -n 1 | tr -cd '[:print:]' | cut -c 1-200)
if [ "$code" -eq 124 ]; then
    say 'nvidia-smi does not answer'
elif [ "$code" -ne 0 ]; then
    say "nvidia-smi failed with exit code $code${other:+: $other}"
elif [ "$found" -lt "$wanted" ]; then
    say "$found of the $wanted GPUs are there${other:+: $other}"
else
    say ok
fi
