#!/bin/sh
# deep-job.sh DIRECTORY IMAGE: the batch script of `doctor --deep`; IMAGE may be `-`. Writes DIRECTORY/answer.
# shellcheck source=src/towline/slurm/scripts/frames.sh
. ./frames.sh
# shellcheck source=src/towline/slurm/scripts/places.sh
. ./places.sh
# shellcheck source=src/towline/slurm/scripts/enroot.sh
. ./enroot.sh

tl_directory=$1 tl_image=$2
# The second start is the proof that the first could put the job back.
[ "${SLURM_RESTART_COUNT:-0}" = 0 ] || exit 0
umask 077
trap '' TERM
SLURM_EXPORT_ENV=ALL
export SLURM_EXPORT_ENV

node() {
    printf '@fact node\n>host %s\n>restarts %s\n>gpus %s\n' "$(uname -n)" "${SLURM_RESTART_COUNT:-0}" "${CUDA_VISIBLE_DEVICES:--}"
    sed -n 's/^PRETTY_NAME="\{0,1\}\([^"]*\)"\{0,1\}$/>system \1/p' /etc/os-release
    [ -n "${HOME:-}" ] && [ -w "$HOME" ] && echo '>home-writable yes'
}

# The mark is a mount that only a container has: Pyxis set `optional` runs the command on the bare host else.
container() {
    [ "$tl_image" != - ] || return 0
    # shellcheck disable=SC2016  # the container's shell expands this
    ask container - - srun --ntasks=1 "--container-image=$tl_image" --no-container-mount-home \
        "--container-mounts=$tl_directory:/towline-doctor" sh -c '
            [ -f /towline-doctor/mark ] && echo inside
            sed -n "s/^\(PRETTY_\)\{0,1\}NAME=\"\{0,1\}\([^\"]*\)\"\{0,1\}\$/system \2/p" /etc/os-release 2>/dev/null
            (: >/towline-doctor/written) 2>/dev/null && echo written
            if command -v nvidia-smi >/dev/null 2>&1; then nvidia-smi -L 2>&1 | sed "s/^GPU /gpu &/; t; s/^/smi /"; else echo no-nvidia-smi; fi
            exit 0'
}

next_attempt() {
    while IFS= read -r tl_option; do
        [ -z "$tl_option" ] || set -- "$@" "$tl_option"
    done <"$tl_directory/options"
    ask sbatch - - sbatch --test-only --time=1 --nodes=1 --wrap=: "$@"
}

cd "$TMPDIR" 2>/dev/null || cd /tmp || exit
tl_scratch=$(mktemp -d) || exit
cd "$tl_scratch" || exit
{
    node
    printf '@fact node-root\n'
    if (: >"$tl_directory/from-node") 2>./root.err; then echo '>written'; else sed 's/^/!/' ./root.err; fi
    enroot_places
    credentials
    container
    next_attempt
} >./answer
# After this line the job is taken back to the queue, where the other side finds and cancels it.
ask requeue - - scontrol requeue "$SLURM_JOB_ID" >>./answer
cp ./answer "$tl_directory/.answer" && mv "$tl_directory/.answer" "$tl_directory/answer" && : >"$tl_directory/end"
rm -rf "$tl_scratch"
