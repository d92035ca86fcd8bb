#!/bin/sh
# gpus.sh ID FIELDS DIR: what nvidia-smi says of the GPUs of a running job, a line for each with the node's name before it.
# Exit codes: 60 Slurm does not run the job; 1 no node answered, with the reason on stderr.
# shellcheck source=src/towline/slurm/scripts/common.sh
. ./common.sh
# shellcheck source=src/towline/slurm/scripts/strangers.sh
. ./strangers.sh
find_slurm

! is_stranger "$1" "$3" || exit 60
tl_found=$(squeue --noheader --jobs="$1" --states=RUNNING --format='%A %D' 2>/dev/null | head -n 1)
tl_job=${tl_found% *} tl_nodes=${tl_found#* }
case $tl_job in '' | *[!0-9]*) exit 60 ;; esac

# shellcheck disable=SC2016  # the nodes' shells expand it
srun --overlap --jobid="$tl_job" --nodes="$tl_nodes" --ntasks="$tl_nodes" --ntasks-per-node=1 --mpi=none --chdir=/ \
    --export=PATH /bin/sh -c '
    PATH=$PATH:/usr/local/bin:/usr/bin:/bin
    nvidia-smi ${CUDA_VISIBLE_DEVICES:+-i "$CUDA_VISIBLE_DEVICES"} --query-gpu="$0" --format=csv,noheader,nounits | while IFS= read -r line; do
        printf "%s, %s\n" "${SLURMD_NODENAME:-$(uname -n)}" "$line"
    done' "$2"
