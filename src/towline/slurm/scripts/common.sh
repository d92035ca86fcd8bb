#!/bin/sh
# What all scripts share. They run in a private working directory that holds their files; stdin is empty.
# Exit codes (towline.slurm.submission.ScriptExit):
#   39 the profile's setup line failed
#   40 Slurm's commands were not found     41 the root cannot be used       42 not safely the user's own
#   43 required paths are missing          44 no space or quota left        45 a file could not be written
#   46 the job is cancelled                47 another submission is going on
#   48 sbatch refused                      49 whether there is a job is not known
#   50 there is no job of this attempt     51 nor will there be: the submission is withdrawn
#   52 no further attempt is due
#   60 Slurm does not run the job          61 no such rank runs
#   62 Slurm has given the job's id to another one

umask 077
tl_locale=${LC_ALL-none}
LC_ALL=C
export LC_ALL

# Variables of a surrounding job or of the user's profile would change what Slurm's commands do, and a job that takes
# over the environment (sbatch(1), --export) would find another one's ranks and devices there.
# The shell's own list saves two processes for each operation; lines within a value are no names, or name what is not set.
tl_inside=${SLURM_JOB_ID-}
tl_exported=$(export -p)
case $tl_exported in
*'export PATH='*) ;;
*) tl_exported=$(env | sed -n 's/^\([A-Za-z_][A-Za-z0-9_]*\)=.*/export \1=/p') ;;
esac
tl_ifs=$IFS
IFS='
'
set -f
for tl_name in $tl_exported; do
    tl_name=${tl_name#export }
    tl_name=${tl_name%%=*}
    case $tl_name in
    SLURM_CONF | *[!A-Za-z0-9_]*) ;;
    SLURM_* | SLURMD_* | SLURMSTEPD_* | _SLURM_* | SPANK_* | PMI_* | PMI2_* | PMIX_*) unset "$tl_name" ;;
    SBATCH_* | SQUEUE_* | SACCT_* | SCANCEL_* | SINFO_* | SCONTROL_* | SRUN_* | SALLOC_*) unset "$tl_name" ;;
    CUDA_VISIBLE_DEVICES | GPU_DEVICE_ORDINAL | ROCR_VISIBLE_DEVICES | ZE_AFFINITY_MASK | OMPI_* | TOWLINE_* | \
        MASTER_ADDR | MASTER_PORT | NODE_RANK | NNODES | NPROC_PER_NODE | NUM_GPU_PER_NODE | WORLD_SIZE | \
        RANK | LOCAL_RANK | GROUP_RANK) [ -z "$tl_inside" ] || unset "$tl_name" ;;
    esac
done
set +f
IFS=$tl_ifs

# as_user COMMAND…: in the user's own locale, for what takes over the environment.
as_user() {
    if [ "$tl_locale" = none ]; then unset LC_ALL; else LC_ALL=$tl_locale; fi
    "$@"
}

PATH=$PATH:/usr/bin:/bin:/usr/local/bin:/opt/slurm/bin:/cm/shared/apps/slurm/current/bin
export PATH

# A shell line of the cluster profile, for sites that need a module first; what it prints is nobody's data.
# A line that leaves the shell ends everything; one that fails may be harmless, and Slurm is there or it is not.
setup_failed() {
    printf 'the setup line ended with exit code %s: %s\n' "$1" "$(tail -n 5 ./setup.err)" >&2
    exit 39
}
if [ -f ./setup ]; then
    if ! /bin/sh -n ./setup 2>./setup.err; then
        printf 'the setup line is not valid sh: %s\n' "$(cat ./setup.err)" >&2
        exit 39
    fi
    trap 'setup_failed $?' EXIT
    # shellcheck source=/dev/null
    . ./setup >./setup.err 2>&1 </dev/null
    trap - EXIT
fi

# The login shell may know where Slurm is when this one does not.
find_slurm() {
    command -v sbatch >/dev/null 2>&1 && return 0
    case ${SHELL:-/bin/sh} in
    *csh) tl_found=$("$SHELL" -c 'which sbatch' 2>/dev/null </dev/null) ;;
    *) tl_found=$("${SHELL:-/bin/sh}" -lc 'command -v sbatch' 2>/dev/null </dev/null) ;;
    esac
    tl_found=$(printf '%s\n' "$tl_found" | sed -n '/^\/.*\/sbatch$/p' | tail -n 1)
    if [ -n "$tl_found" ]; then
        PATH=$PATH:${tl_found%/sbatch}
        return 0
    fi
    printf 'sbatch was not found; PATH is %s\n' "$PATH" >&2
    [ -s ./setup.err ] && printf 'the setup line of the cluster profile printed: %s\n' "$(tail -n 5 ./setup.err)" >&2
    exit 40
}
