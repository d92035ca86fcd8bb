#!/bin/sh
# The batch script's work, on the first node of the allocation: claim the attempt, start the step, judge how it went.
#
# Environment: TOWLINE_JOB_DIR, TOWLINE_JOB_ID and TOWLINE_ATTEMPT from the batch script, and Slurm's own variables.
# Files: attempts/<n>/ claim, start, signal, decision, end (see launch/records.py for their content). A task of an array
# has its own in attempts/<n>/task-<number>/, but for the claim, which is the array's.
# Exit code: the job's. 0 only when every rank recorded success; 120 to 123 are explained in launch/records.py.
set -u
umask 077
# What these scripts call theirs must neither come from a site's or a user's environment nor go on from here.
for tl_name in $(env | sed -n 's/^\(tl_[A-Za-z0-9_]*\)=.*/\1/p'); do unset "$tl_name"; done

tl_duplicate=120 tl_cancelled=121 tl_no_container=122 tl_unusable=123

# A restart under the same Slurm id is an attempt of its own, so that two starts never write into the same files:
# a node that was cut off may still run the earlier one.
tl_restarts=${SLURM_RESTART_COUNT:-0}
tl_number=$((TOWLINE_ATTEMPT + tl_restarts))
tl_attempt_dir=$TOWLINE_JOB_DIR/attempts/$tl_number
tl_task=${SLURM_ARRAY_TASK_ID:-} tl_slurm_id=${SLURM_ARRAY_JOB_ID:-$SLURM_JOB_ID}
tl_own_dir=$tl_attempt_dir${tl_task:+/task-$tl_task}
tl_log=$tl_attempt_dir/main${tl_task:+-$tl_task}
tl_exits=$tl_own_dir/exit
tl_began=$(date +%s)
# Slurm writes there why it ends a job; after a restart still to the first attempt's.
tl_slurm_err=$TOWLINE_JOB_DIR/attempts/$TOWLINE_ATTEMPT/main${tl_task:+-$tl_task}.err
tl_err_size=$(wc -c <"$tl_slurm_err" 2>/dev/null || echo 0)

say() {
    printf 'towline: %s\n' "$1" >&2
}

give_up() {
    say "$1"
    exit "$tl_unusable"
}

# put NAME LINE…: a file of the attempt that is whole or not there. A full disk must not change the job's code.
put() {
    tl_put_name=$1
    shift
    { printf '%s\n' "$@" >"$tl_own_dir/.$tl_put_name" && mv -f "$tl_own_dir/.$tl_put_name" "$tl_own_dir/$tl_put_name"; } \
        2>/dev/null || say "cannot write $tl_own_dir/$tl_put_name"
}

# --- The claim -------------------------------------------------------------------------------------------------

# The claim appears whole and once: a hard link to a finished file. What it holds decides, not what ln says, for a
# network file system may report failure for a link that was made.
make_claim() {
    mkdir -p "$tl_attempt_dir" || give_up "cannot make $tl_attempt_dir"
    fill_gap
    tl_mine=$tl_attempt_dir/.claim.$SLURM_JOB_ID.$$
    printf '%s\n' "$tl_slurm_id" >"$tl_mine" || give_up "cannot write to $tl_attempt_dir"
    ln "$tl_mine" "$tl_attempt_dir/claim" 2>/dev/null
    if [ ! -e "$tl_attempt_dir/claim" ]; then # a file system without hard links
        (set -C && cat "$tl_mine" >"$tl_attempt_dir/claim") 2>/dev/null
    fi
    rm -f "$tl_mine"
}

# A start that failed before this script ran (a prolog did, say) was a restart all the same; without a gap the newest
# attempt is found by counting.
fill_gap() {
    tl_each=$TOWLINE_ATTEMPT
    while [ "$tl_each" -lt "$tl_number" ]; do
        mkdir -p "$TOWLINE_JOB_DIR/attempts/$tl_each"
        tl_each=$((tl_each + 1))
    done
}

# Without hard links a claim is empty for a moment.
read_owner() {
    tl_owner=
    for _ in 1 2 3 4 5; do
        [ -r "$tl_attempt_dir/claim" ] && read -r tl_owner <"$tl_attempt_dir/claim"
        [ -z "$tl_owner" ] || return
        sleep 1
    done
    give_up "cannot read $tl_attempt_dir/claim"
}

# Another Slurm job with the same token owns the attempt when a submission whose answer was lost was sent again.
# This one then leaves without a trace, for the owner's logs and records are in the same place.
claim() {
    [ -e "$tl_attempt_dir/claim" ] || make_claim
    read_owner
    [ "$tl_owner" = "$tl_slurm_id" ] || exit "$tl_duplicate"
    # A job that was taken for dead may still be started.
    [ ! -d "$TOWLINE_JOB_DIR/attempts/$((tl_number + 1))${tl_task:+/task-$tl_task}" ] || exit "$tl_duplicate"
    mkdir -p "$tl_own_dir" || give_up "cannot make $tl_own_dir"
}

# --- Before the step -------------------------------------------------------------------------------------------

# Slurm goes on writing to the first attempt's files after a restart.
use_own_logs() {
    [ "$tl_restarts" -gt 0 ] || return 0
    # A redirection of exec that fails would end this shell.
    { true >>"$tl_log.out" && true >>"$tl_log.err"; } 2>/dev/null || return 0
    exec >>"$tl_log.out" 2>>"$tl_log.err"
}

is_cancelled() {
    [ -e "$TOWLINE_JOB_DIR/cancelled" ] || { [ -n "$tl_task" ] && [ -e "$TOWLINE_JOB_DIR/cancelled-$tl_task" ]; }
}

# At an end that is for good nobody needs the secrets any more. An array's other tasks read the same file: there the
# client's poll takes it away, as it does when this shell is killed.
forget_secrets() {
    [ -n "${SLURM_ARRAY_JOB_ID:-}" ] || rm -f "$TOWLINE_JOB_DIR/secrets"
}

leave_if_cancelled() {
    is_cancelled || return 0
    forget_secrets
    put end "code=$tl_cancelled" "verdict=cancelled" "rank=" "reason=cancelled" "time=$(date +%s)"
    exit "$tl_cancelled"
}

# set_log_dir DIRECTORY: where the tasks write their own files, if they do, as srun takes it.
# shellcheck disable=SC2034  # the step's words have it
set_log_dir() {
    tl_log_dir=$1
    case $1 in *%*) tl_log_dir=$(printf '%s\n' "$1" | sed 's/%/%%/g') ;; esac
}

# Slurm may start a batch script again without counting it as a restart; what that start left is not this one's.
clear_leftovers() {
    rm -rf "$tl_exits" "$tl_own_dir/roles" "$tl_own_dir/end" "$tl_own_dir/signal" "$tl_own_dir/decision" "$tl_own_dir/checks" \
        "$tl_own_dir/use" "$tl_own_dir/hung" "$tl_own_dir/stacks" "$TOWLINE_JOB_DIR/paused"
    mkdir "$tl_exits" || give_up "cannot make $tl_exits"
}

note_start() {
    put start "slurm_id=$tl_slurm_id${tl_task:+_$tl_task}" "restart_count=$tl_restarts" "host=$(uname -n)" \
        "nodes=${SLURM_JOB_NODELIST:-}" "time=$(date +%s)"
}

link_logs() {
    tl_link=${SLURM_JOB_NAME:-job}-$tl_slurm_id
    [ "$tl_restarts" -eq 0 ] || tl_link=$tl_link-r$tl_restarts
    case $tl_link in */*) return ;; esac
    mkdir -p "$TOWLINE_JOB_DIR/slurm-logs" 2>/dev/null
    ln -sn "../attempts/$tl_number" "$TOWLINE_JOB_DIR/slurm-logs/$tl_link" 2>/dev/null
    if [ -f "$TOWLINE_JOB_DIR/script/layout" ] && [ ! -h "${TOWLINE_JOB_DIR%/jobs/*}/slurm-logs/$tl_link" ]; then
        ln -sn "../jobs/${TOWLINE_JOB_DIR##*/}/slurm-logs/$tl_link" "${TOWLINE_JOB_DIR%/jobs/*}/slurm-logs/$tl_link" 2>/dev/null
    fi
}

# scontrol needs no controller for this, but some sites have no client commands on their nodes; the batch script
# runs on the first host anyway.
first_host() {
    tl_host=$(scontrol show hostnames "${SLURM_JOB_NODELIST:-}" 2>/dev/null | head -n 1)
    printf '%s\n' "${tl_host:-${SLURMD_NODENAME:-$(uname -n)}}"
}

# The port that follows from the id, or the next one that nobody uses on this host, which is the first one.
free_port() {
    tl_port=$((20000 + SLURM_JOB_ID % 10000))
    for _ in 1 2 3 4 5 6 7 8 9; do
        used_port "$tl_port" || break
        tl_port=$((20000 + (tl_port - 19999) % 10000))
    done
    printf '%s\n' "$tl_port"
}

# Linux lists sockets as `n: ADDRESS:PORT ADDRESS:PORT …` with ports in four hexadecimal digits (proc(5)).
used_port() {
    cat /proc/net/tcp /proc/net/tcp6 2>/dev/null | grep -qi "^ *[0-9]*: [0-9A-F]*:$(printf '%04X' "$1") "
}

# A batch script has what the user's login files set (sbatch(1), --export=NONE), and from there it would get into every
# container: an LD_LIBRARY_PATH or PYTHONPATH of the host's, tokens. What Slurm and the site set for jobs stays.
choose_environment() {
    for tl_name in $(env | sed -n 's/^\([A-Za-z_][A-Za-z0-9_]*\)=.*/\1/p'); do
        case $tl_name in
        PMI_* | PMI2_* | PMIX_RANK | PMIX_NAMESPACE | PMIX_SERVER_URI*) unset "$tl_name" ;; # srun sets them for each task
        SLURM* | TOWLINE_* | PMI* | OMPI_* | MPICH_* | I_MPI_* | UCX_* | UCC_* | NCCL_* | FI_* | SHARP_*) ;;
        MV2_* | HYDRA_* | HCOLL_* | OPAL_* | PRTE_* | PSM2_* | RDMAV_* | IBV_* | GDRCOPY_*) ;;
        CUDA_* | NVIDIA_* | GPU_DEVICE_ORDINAL | ROCR_* | HIP_* | ZE_* | MELLANOX_* | ENROOT_* | PYXIS_*) ;;
        PATH | HOME | USER | LOGNAME | SHELL | PWD | HOSTNAME | TMPDIR | LANG | LC_* | TZ | KRB5CCNAME) ;;
        *_proxy | *_PROXY) ;;
        BASH* | SHELLOPTS | PPID | UID | EUID) ;; # some shells let nobody unset these
        *) unset "$tl_name" ;;
        esac
    done
}

set_environment() {
    # Under sbatch --export=NONE a step would get nothing, not even PATH.
    export SLURM_EXPORT_ENV=ALL
    export TOWLINE_ATTEMPT="$tl_number" TOWLINE_WARNING="$tl_heal_signal"
    TOWLINE_MASTER_ADDR=$(first_host)
    TOWLINE_MASTER_PORT=${tl_step_port:-$(free_port)}
    export TOWLINE_MASTER_ADDR TOWLINE_MASTER_PORT
}

# --- The step --------------------------------------------------------------------------------------------------

tl_caught=0 tl_told='' tl_stopped=''

# shellcheck disable=SC2317  # called from traps
pass_on() {
    tl_caught=$2
    kill -s "$1" "$tl_step" 2>/dev/null
}

# A job that was paused may have no time to judge its end, and the pause is to cost it nothing all the same.
# shellcheck disable=SC2317  # called from traps
note_term() {
    put signal "signal=TERM" "time=$(date +%s)"
    [ ! -e "$TOWLINE_JOB_DIR/paused" ] || [ -e "$tl_own_dir/decision" ] ||
        put decision "class=paused" "next=no" "why=" "nodes=" "progress=" "evidence=" "time=$(date +%s)"
}

# Slurm sends TERM for a cancellation, the walltime, a preemption and a requeue alike; KILL follows after KillWait,
# maybe before anything else can be written. Ranks may still fail in consequence: whoever fails from here on does not
# do so by itself.
# shellcheck disable=SC2317  # called from a trap
on_term() {
    if [ -z "$tl_told" ]; then
        note_term
        [ -e "$tl_exits/first" ] || tl_stopped=1
    fi
    tl_told=1
    pass_on TERM 15
}

# `wait` also returns when a signal came, with 128 + its number. Waiting again then gives the step's code, or 127
# when it had been collected already.
await_step() {
    tl_srun_code=
    while :; do
        tl_caught=0
        wait "$tl_step"
        tl_code=$?
        if [ "$tl_code" -eq 127 ] && [ -n "$tl_srun_code" ]; then break; fi
        tl_srun_code=$tl_code
        if [ "$tl_caught" -eq 0 ] || [ "$tl_code" -ne $((128 + tl_caught)) ]; then break; fi
    done
}

# The traps come after the start: a child that is signalled before it has dropped inherited traps would lose the
# signal. A signal before that ends this shell, and what it started goes with the job.
run_step() {
    (
        [ "$tl_step_environment" = whole ] || choose_environment
        exec "$@"
    ) </dev/null &
    tl_step=$!
    watch_successor "$tl_step"
    [ -n "$tl_step_roles" ] || watch_life "$tl_step"
    trap on_term TERM
    trap 'pass_on USR1 10' USR1
    trap 'pass_on USR2 12' USR2
    await_step
    stop_successor_watch
    [ -n "$tl_step_roles" ] || stop_watch
}

# --- The end ---------------------------------------------------------------------------------------------------------

note_end() {
    # After TERM Slurm may start the job again.
    [ "$tl_verdict" = stopped ] || [ "$tl_next" = yes ] || forget_secrets
    put end "code=$tl_job_code" "verdict=$tl_verdict" "rank=$tl_job_rank" "role=$tl_job_role" "reason=$tl_reason" "srun=$tl_srun_code" \
        "time=$(date +%s)"
}

# --- In order --------------------------------------------------------------------------------------------------

claim
use_own_logs
leave_if_cancelled
clear_leftovers
link_logs
note_start
[ -r "$TOWLINE_JOB_DIR/script/step" ] || give_up "cannot read $TOWLINE_JOB_DIR/script/step"
# Sets these and the positional parameters.
tl_step_tasks='' tl_step_port='' tl_step_environment='' tl_step_roles='' tl_step_logs=''
set_log_dir "$tl_own_dir"
# shellcheck source=/dev/null
. "$TOWLINE_JOB_DIR/script/step"
tl_heal_limit='' tl_heal_grace='' tl_heal_signal='' tl_heal_checkpoints='' tl_heal_exit_code=''
# shellcheck source=/dev/null
. "$TOWLINE_JOB_DIR/script/settings"
# shellcheck source=src/towline/launch/scripts/judge.sh
. "$TOWLINE_JOB_DIR/script/judge.sh"
# shellcheck source=src/towline/launch/scripts/heal.sh
. "$TOWLINE_JOB_DIR/script/heal.sh"
# shellcheck source=src/towline/launch/scripts/nodes.sh
. "$TOWLINE_JOB_DIR/script/nodes.sh"
# shellcheck source=src/towline/launch/scripts/hang.sh
. "$TOWLINE_JOB_DIR/script/hang.sh"
# shellcheck source=src/towline/launch/scripts/fetch.sh
. "$TOWLINE_JOB_DIR/script/fetch.sh"
tl_verdict='' tl_job_role='' tl_srun_code=''
leave_if_done
leave_if_spent
await_predecessor
set_environment
note_checkpoint
if ! check_together || ! check_first || ! fetch_inputs; then
    : # judged already
elif [ -z "$tl_step_roles" ]; then
    [ -z "$tl_step_logs" ] || mkdir -p "$tl_own_dir/$tl_step_logs" || give_up "cannot make $tl_own_dir/$tl_step_logs"
    run_step "$@"
    judge
else
    # shellcheck source=src/towline/launch/scripts/roles.sh
    . "$TOWLINE_JOB_DIR/script/roles.sh"
    run_roles
fi
decide_next
note_end
start_next
exit "$tl_job_code"
