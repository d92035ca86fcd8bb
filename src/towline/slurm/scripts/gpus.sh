#!/bin/sh
# gpus.sh ID FIELDS DIR: what nvidia-smi says of the GPUs of a running job, a line for each with the node's name before it.
# Exit codes: 60 Slurm does not run the job; 1 no node answered, with the reason on stderr.
# shellcheck source=src/towline/slurm/scripts/common.sh
. ./common.sh
# shellcheck source=src/towline/slurm/scripts/strangers.sh
. ./strangers.sh
# shellcheck source=src/towline/slurm/scripts/running.sh
. ./running.sh
find_slurm

! is_stranger "$1" "$3" || exit 60
running "$1" >./parts
[ -s ./parts ] || exit 60

# ask_nodes FIELDS JOB GROUP COUNT: those of one component, or of the whole job.
ask_nodes() {
    tl_part=
    [ "$3" = - ] || tl_part=--het-group=$3
    # shellcheck disable=SC2016  # the nodes' shells expand it
    srun --overlap --jobid="$2" ${tl_part:+"$tl_part"} --nodes="$4" --ntasks="$4" --ntasks-per-node=1 --mpi=none --chdir=/ \
        --export=PATH /bin/sh -c '
        PATH=$PATH:/usr/local/bin:/usr/bin:/bin
        nvidia-smi ${CUDA_VISIBLE_DEVICES:+-i "$CUDA_VISIBLE_DEVICES"} --query-gpu="$0" --format=csv,noheader,nounits | while IFS= read -r line; do
            printf "%s, %s\n" "${SLURMD_NODENAME:-$(uname -n)}" "$line"
        done' "$1" </dev/null
}

tl_code=0
while read -r tl_job tl_group tl_count _ <&3; do
    ask_nodes "$2" "$tl_job" "$tl_group" "$tl_count" || tl_code=$?
done 3<./parts
(exit "$tl_code")
