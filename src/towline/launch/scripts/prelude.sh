#!/bin/sh
# Runs in every task, inside the container when there is one: srun … /bin/sh <job directory>/script/prelude container|node
#
# Sets the rank's environment, runs script/entrypoint, records how it ended and ends with the same code, if it has no successor. Needs a POSIX sh,
# mkdir, mv, ln, rm and env; busybox has them. Records: attempts/<n>/exit/<rank> and exit/first (see launch/records.py).
set -u
# Files of a job are private, those of its command too; a command that shares what it makes sets its own umask.
umask 077
# What this script calls its own must neither come from somebody's environment nor go on to the command.
unset tl_attempts tl_caught tl_child tl_code tl_exits tl_hex tl_local tl_no_container tl_rank tl_result tl_results tl_role \
    tl_script tl_secrets tl_state tl_successor tl_successor_watch tl_table tl_task tl_told tl_unusable tl_watcher

tl_no_container=122 tl_unusable=123
tl_rank=${SLURM_PROCID:-0}
tl_task=${SLURM_ARRAY_TASK_ID:-} # of an array
tl_role=${TOWLINE_ROLE:+/roles/$TOWLINE_ROLE} # of a job with roles
tl_script=$TOWLINE_JOB_DIR/script$tl_role
tl_exits=$TOWLINE_JOB_DIR/attempts/$TOWLINE_ATTEMPT${tl_task:+/task-$tl_task}$tl_role/exit
tl_results=$TOWLINE_JOB_DIR/results${tl_task:+/$tl_task}

say() {
    printf 'towline: rank %s: %s\n' "$tl_rank" "$1" >&2
}

# The first rank that failed by itself: one hard link wins.
record_first() {
    { printf '%s\n' "$tl_rank" >"$tl_exits/.first.$tl_rank" && ln "$tl_exits/.first.$tl_rank" "$tl_exits/first"; } 2>/dev/null
    if [ -n "$tl_role" ]; then
        { printf '%s\n' "$TOWLINE_ROLE" >"$tl_exits/.role.$tl_rank" && ln "$tl_exits/.role.$tl_rank" "${tl_exits%/*/exit}/.first"; } 2>/dev/null
    fi
    rm -f "$tl_exits/.first.$tl_rank" "$tl_exits/.role.$tl_rank" 2>/dev/null
}

# Tells a rank that was lost from one that never ran its command, and where one is that still runs: its process (Enroot's
# containers have no pids of their own), the node, the number of the node, and its number there.
begin_record() {
    { printf '%s %s %s %s\n' "$$" "${SLURMD_NODENAME:--}" "${SLURM_NODEID:-0}" "${SLURM_LOCALID:-0}" >"$tl_exits/.$tl_rank"; } \
        2>/dev/null
}

# record CODE KIND: a full disk must not change the code.
record() {
    { printf '%s %s %s\n' "$1" "$2" "${SLURMD_NODENAME:-}" >"$tl_exits/.$tl_rank" && mv -f "$tl_exits/.$tl_rank" "$tl_exits/$tl_rank"; } 2>/dev/null ||
        say "exit code $1 could not be recorded in $tl_exits"
    [ "$1" -eq 0 ] || [ "$2" = signal ] || record_first
}

refuse() {
    say "$2"
    record "$1" unstarted
    exit "$1"
}

# Pyxis set `optional` runs the command on the bare host when the container could not start. The mark is a mount
# that only the container has.
check_place() {
    if [ "$1" = container ] && [ ! -f /.towline/prelude ]; then
        refuse "$tl_no_container" \
            "the container did not start; this node (${SLURMD_NODENAME:-unknown}) runs commands on the bare host"
    fi
    [ -r "$tl_script/env" ] || refuse "$tl_unusable" "cannot read $tl_script/env"
    [ -r "$tl_script/entrypoint" ] || refuse "$tl_unusable" "cannot read $tl_script/entrypoint"
    if [ -e "$TOWLINE_JOB_DIR/script/secrets" ] && [ ! -r "$TOWLINE_JOB_DIR/secrets" ]; then
        refuse "$tl_unusable" "cannot read $TOWLINE_JOB_DIR/secrets; it is removed once the job is over for good"
    fi
}

make_results() {
    mkdir -p "$tl_results" 2>/dev/null || say "cannot make $tl_results"
}

# --- The command -----------------------------------------------------------------------------------------------

# Ranks are known here, in the task; in the batch script they would be the same for all. Only the command gets this
# environment: a PATH or LD_PRELOAD of its own must not break what the prelude calls.
# set_environment SCRIPT RESULTS SECRETS: nothing of this script's own is read once the user's variables are there.
set_environment() {
    # shellcheck source=/dev/null
    . "$1/env"
    export TOWLINE_RESULTS_DIR="$2"
    # No other process of the job ever has these.
    # shellcheck source=/dev/null
    [ -z "$3" ] || . "$3"
}

# A shell starts background commands with INT and QUIT ignored, and all that they start inherits it: a Python program
# would have no KeyboardInterrupt. Shells cannot undo that for themselves; env (coreutils 8.31) or perl can.
exec_with_default_signals() {
    if env --default-signal=INT true 2>/dev/null; then
        exec env --default-signal=INT --default-signal=QUIT "$@"
    elif perl -e 1 2>/dev/null; then
        # shellcheck disable=SC2016  # perl's variables
        exec env PERL_BADLANG=0 \
            perl -e 'delete $ENV{PERL_BADLANG}; $SIG{INT} = $SIG{QUIT} = "DEFAULT"; exec(@ARGV)' "$@"
    fi
    exec "$@"
}

tl_caught=0 tl_told=''

# shellcheck disable=SC2317  # called from traps
pass_on() {
    tl_caught=$2
    kill -s "$1" "$tl_child" 2>/dev/null
}

# The signal before the walltime ends is a word to stop, whichever it is.
# shellcheck disable=SC2317  # called from traps
warn() {
    [ "${TOWLINE_WARNING:-}" != "$1" ] || tl_told=1
    pass_on "$1" "$2"
}

# Slurm's own signals reach only the task itself (proctrack/cgroup), which is this shell. The traps come after the
# start: a child that is signalled before it has dropped inherited traps would lose the signal.
start() {
    # script/secrets has the names, secrets the values.
    tl_secrets=
    [ ! -e "$TOWLINE_JOB_DIR/script/secrets" ] || tl_secrets=$TOWLINE_JOB_DIR/secrets
    (
        set -- "$tl_script" "$tl_results" "$tl_secrets"
        set_environment "$@"
        exec_with_default_signals /bin/sh "$1/entrypoint"
    ) &
    tl_child=$!
    trap 'tl_told=1; pass_on TERM 15' TERM
    trap 'tl_told=1; pass_on INT 2' INT
    trap 'warn HUP 1' HUP
    trap 'warn USR1 10' USR1
    trap 'warn USR2 12' USR2
}

# `wait` also returns when a signal came, with 128 + its number. Waiting again then gives the command's code, or 127
# when it had been collected already.
await() {
    tl_result=
    while :; do
        tl_caught=0
        wait "$tl_child"
        tl_code=$?
        if [ "$tl_code" -eq 127 ] && [ -n "$tl_result" ]; then break; fi
        tl_result=$tl_code
        if [ "$tl_caught" -eq 0 ] || [ "$tl_code" -ne $((128 + tl_caught)) ]; then break; fi
    done
}

# A rank that was told to stop did not fail by itself, whatever it makes of it.
note_result() {
    if [ -n "$tl_told" ]; then
        record "$tl_result" signal
    else
        record "$tl_result" self
    fi
}

# --- Readiness -------------------------------------------------------------------------------------------------

# listens PORT: whether anybody on this node does. Linux lists sockets as `n: ADDRESS:PORT ADDRESS:PORT STATE …`, ports
# in four hexadecimal digits, state 0A for those that listen (proc(5)).
listens() {
    tl_hex=$(printf '%04X' "$1")
    for tl_table in /proc/net/tcp /proc/net/tcp6; do
        [ -r "$tl_table" ] || continue
        while read -r _ tl_local _ tl_state _; do
            case $tl_local/$tl_state in *":$tl_hex/0A") return 0 ;; esac
        done <"$tl_table"
    done
    return 1
}

# The number of a role's step, by which its supervisor has it ended.
note_step() {
    if [ -n "$tl_role" ] && [ "$tl_rank" -eq 0 ]; then
        { printf '%s\n' "${SLURM_STEP_ID:-}" >"${tl_exits%/exit}/step"; } 2>/dev/null
    fi
}

# The first task of a role that others wait for tells when its port answers.
tells_ready() {
    [ -n "${TOWLINE_READY_PORT:-}" ] && [ "$tl_rank" -eq 0 ]
}

check_port() {
    tells_ready && listens "$TOWLINE_READY_PORT" || return 0
    refuse "$tl_unusable" "port $TOWLINE_READY_PORT of ${SLURMD_NODENAME:-this node} is in use already; somebody else listens there"
}

watch_port() {
    tl_watcher=
    tells_ready || return 0
    (
        until listens "$TOWLINE_READY_PORT"; do sleep 0.3 2>/dev/null || sleep 1; done
        true >"${tl_exits%/exit}/ready"
    ) &
    tl_watcher=$!
}

# --- The successor ---------------------------------------------------------------------------------------------

# A node that was cut off runs on what Slurm has long started elsewhere. So each task looks whether there is a newer attempt,
# and then ends. The list is read for network file systems, which remember for a while that a name was not there.
watch_successor() {
    tl_attempts=$TOWLINE_JOB_DIR/attempts
    tl_successor=$tl_attempts/$((TOWLINE_ATTEMPT + 1))${tl_task:+/task-$tl_task}
    (
        until [ -d "$tl_successor" ]; do
            sleep 3 >/dev/null 2>&1 || exit
            for _ in "$tl_attempts"/*; do :; done
        done
        say "attempt $((TOWLINE_ATTEMPT + 1)) has begun; this one ends"
        kill -s TERM "$$" 2>/dev/null
        sleep 3 >/dev/null 2>&1
        kill -s KILL "$tl_child" 2>/dev/null
    ) &
    tl_successor_watch=$!
}

check_place "${1:-node}"
check_port
note_step
make_results
begin_record
start
watch_port
watch_successor
await
[ -z "$tl_watcher" ] || kill "$tl_watcher" 2>/dev/null
kill "$tl_successor_watch" 2>/dev/null
note_result
# A code other than 0 has srun end the step of this number, which may be the successor's (see heal.sh).
[ ! -d "$tl_successor" ] || exit 0
exit "$tl_result"
