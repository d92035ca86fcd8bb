# shellcheck shell=sh
# shellcheck disable=SC2154  # the supervisor and the roles' step files set them
# shellcheck disable=SC2034  # the supervisor reads them
# Read by the supervisor of a job with roles: starts each role's step in turn, waits until it is ready where it says
# how that is seen, and ends all when one has failed or all but the services are done.
#
# Files: attempts/<n>/roles/<role>/ main.out, main.err, exit/, step and ready (the prelude of its first task writes them),
# and attempts/<n>/roles/.first, the role whose rank was the first to fail by itself.

tl_roles_dir=$tl_own_dir/roles
tl_running='' tl_finished='' tl_saved='' tl_signals='' tl_service_left='' tl_linger_until=0
tl_end_patience=15 # seconds that roles get to end by themselves; Slurm kills what is left when this script is over

# load_role NAME: sets tl_role, tl_role_dir, tl_exits, tl_step_tasks and tl_role_… as the role's step file has them.
load_role() {
    tl_role=$1 tl_role_dir=$tl_roles_dir/$1 tl_role_hosts=''
    tl_exits=$tl_role_dir/exit
    set_log_dir "$tl_role_dir"
    # shellcheck source=/dev/null
    . "$TOWLINE_JOB_DIR/script/roles/$1/step"
}

# --- Which role runs where ---

# A heterogeneous job's roles are counted through the nodes of all its components.
list_hosts() {
    tl_all_hosts=$(job_hosts)
    [ -n "$tl_all_hosts" ] || give_up "scontrol does not say which nodes the job has, and the roles cannot be placed"
}

# hosts_from FIRST COUNT: the hosts' names with blanks between.
hosts_from() {
    printf '%s\n' "$tl_all_hosts" | sed -n "$1,$(($1 + $2 - 1))p" | tr '\n' ' ' | sed 's/ $//'
}

# Every role is told of all others: TOWLINE_NODES_POLICY='node2 node3' for the role `policy`.
tell_hosts() {
    for tl_this in $tl_step_roles; do
        load_role "$tl_this"
        export "TOWLINE_NODES_$(printf '%s' "$tl_this" | tr 'a-z-' 'A-Z_')=$(hosts_from "$tl_role_first" "$tl_role_nodes")"
    done
}

# --- Starting and ending ---

# The subshell stands for the step: it passes signals on to srun and ends with its code.
start_role() {
    load_role "$1"
    mkdir -p "$tl_exits" ${tl_step_logs:+"$tl_role_dir/$tl_step_logs"} || give_up "cannot make $tl_exits"
    tl_names=$(hosts_from "$tl_role_first" "$tl_role_nodes")
    say "role $tl_role starts on $tl_names"
    (
        tl_role_hosts=$(printf '%s' "$tl_names" | tr ' ' ',')
        export TOWLINE_ROLE="$tl_role" TOWLINE_READY_PORT="$tl_role_port" TOWLINE_MASTER_ADDR="${tl_names%% *}"
        export TOWLINE_MASTER_PORT="$((TOWLINE_MASTER_PORT + tl_role_number))"
        # shellcheck disable=SC2317  # called from a trap
        on_term() {
            pass_on TERM 15
        }
        [ -z "${tl_role_component:-}" ] || forget_first_component
        tl_srun_code=1
        # shellcheck source=/dev/null
        . "$TOWLINE_JOB_DIR/script/roles/$tl_role/step"
        run_step "$@" >>"$tl_role_dir/main.out" 2>>"$tl_role_dir/main.err"
        exit "$tl_srun_code"
    ) &
    eval "tl_pid_$tl_role_number=$!"
    tl_running="$tl_running $tl_role"
}

# Sends what traps have noted to every role that still runs. A trap may come between any two commands, so it does not do
# it itself.
signal_roles() {
    tl_sending=$tl_signals tl_signals=''
    for tl_signal in $tl_sending; do
        for tl_this in $tl_running; do
            load_number "$tl_this"
            eval "kill -s $tl_signal \"\$tl_pid_$tl_role_number\"" 2>/dev/null
        done
    done
}

load_number() {
    tl_role_number=0
    for tl_known in $tl_step_roles; do
        tl_role_number=$((tl_role_number + 1))
        [ "$tl_known" != "$1" ] || return 0
    done
}

# shellcheck disable=SC2317  # called from a trap
on_roles_term() {
    if [ -z "$tl_told" ]; then
        note_term
        [ -n "$tl_verdict" ] || [ -e "$tl_roles_dir/.first" ] || tl_stopped=1
    fi
    tl_told=1
    tl_signals="$tl_signals TERM"
}

# A trap runs when `wait` returns, so not only after the pause.
pause() {
    { sleep "$1" 2>/dev/null || sleep 1; } &
    wait $!
}

# --- Looking ---

# look: takes note of every role that has left since.
look() {
    signal_roles
    tl_still=''
    for tl_this in $tl_running; do
        load_number "$tl_this"
        eval "tl_pid=\$tl_pid_$tl_role_number"
        if has_left "$tl_pid"; then
            wait "$tl_pid"
            note_left "$tl_this" $?
        else
            tl_still="$tl_still $tl_this"
        fi
    done
    tl_running=$tl_still
    if [ -n "$tl_service_left" ] && [ -z "$tl_verdict$tl_told" ] && [ -n "$tl_running" ] && [ "$(date +%s)" -gt "$tl_linger_until" ]; then
        tl_role=$tl_service_left
        decide_role left 1
    fi
    [ -n "$tl_verdict$tl_told" ] || ! is_hung || decide failed hung "$tl_hung"
}

# note_left NAME CODE
note_left() {
    load_role "$1"
    tl_srun_code=$2
    read_exits
    [ "$tl_obeyed" -eq 0 ] || tl_saved=1
    if all_succeeded && ! { [ "$tl_obeyed" -gt 0 ] && has_successor; }; then
        tl_finished="$tl_finished $1"
        say "role $1 has ended"
        [ -z "$tl_role_service" ] || note_service_left "$1"
        return
    fi
    if [ -n "$tl_verdict$tl_told" ]; then
        say "role $1 was ended"
        return
    fi
    blame "$1"
    # What srun says is often the code of a rank that was ended because another one had failed.
    if [ "$tl_job_role" = "$1" ]; then
        say "role $1 has failed with exit code $tl_job_code"
    else
        say "role $1 has failed after role $tl_job_role"
    fi
}

note_service_left() {
    [ -z "$tl_service_left" ] || return 0
    tl_service_left=$1
    tl_linger_until=$(($(date +%s) + tl_role_linger))
}

# blame NAME: it left with a failure; whose is it? That of a service that left before, else of the first rank that
# failed by itself, whichever role's it is.
blame() {
    if [ -n "$tl_service_left" ]; then
        tl_role=$tl_service_left
        [ "$tl_srun_code" -ne 0 ] || tl_srun_code=1
        decide_role left "$tl_srun_code"
        return
    fi
    tl_named=''
    [ -f "$tl_roles_dir/.first" ] && read -r tl_named <"$tl_roles_dir/.first"
    for tl_each_role in $tl_step_roles; do
        [ "$tl_each_role" = "$tl_named" ] || continue
        load_role "$tl_named"
        read_exits
        if find_culprit; then
            judge_culprit
            tl_job_role=$tl_named
            return
        fi
    done
    load_role "$1"
    read_exits
    if find_culprit; then judge_culprit; else judge_step; fi
    tl_job_role=$1
}

# decide_role REASON CODE: about the role as a whole.
decide_role() {
    decide failed "$1" "$2"
    tl_job_role=$tl_role
}

# all_done: every role that is no service has ended well.
all_done() {
    for tl_this in $tl_step_roles; do
        load_role "$tl_this"
        [ -z "$tl_role_service" ] || continue
        case " $tl_finished " in *" $tl_this "*) ;; *) return 1 ;; esac
    done
}

# await_ready NAME: returns 1 when going on makes no sense.
await_ready() {
    load_role "$1"
    [ -n "$tl_role_port" ] || return 0
    tl_ready=$tl_role_dir/ready tl_port=$tl_role_port tl_patience=$tl_role_patience tl_until=$(($(date +%s) + tl_role_patience))
    while [ ! -e "$tl_ready" ]; do
        look
        [ -z "$tl_verdict$tl_told" ] || return 1
        case " $tl_running " in *" $1 "*) tl_gone='' ;; *) tl_gone=1 ;; esac
        if [ -n "$tl_gone" ] || [ "$(date +%s)" -gt "$tl_until" ]; then
            tl_role=$1
            say "role $1 did not listen on port $tl_port${tl_gone:+ before it ended}; it had $tl_patience s"
            decide_role not-ready 1
            return 1
        fi
        pause 0.2
    done
    say "role $1 is ready"
}

# srun makes KILL of a TERM (it says "forcing job termination"), so Slurm is asked to pass the TERM on, by the number of the
# step, which the prelude has noted. Where that does not work, and after a while, srun is told all the same. An attempt that has a
# successor asks for nothing: the step of that number may be the successor's.
end_roles() {
    look
    for tl_this in $tl_running; do
        ! has_successor || break
        load_number "$tl_this"
        eval "ask_to_end \"$tl_this\" \"\$tl_pid_$tl_role_number\""
    done
    tl_until=$(($(date +%s) + tl_end_patience))
    while look && [ -n "$tl_running" ]; do
        [ "$(date +%s)" -le "$tl_until" ] || break
        pause 0.2
    done
    has_successor || tl_signals=TERM
    look
}

# ask_to_end NAME PID
ask_to_end() {
    tl_step_id=''
    [ -f "$tl_roles_dir/$1/step" ] && read -r tl_step_id <"$tl_roles_dir/$1/step"
    {
        if ! is_number "$tl_step_id" || ! scancel --quiet --signal=TERM "$SLURM_JOB_ID.$tl_step_id" </dev/null 2>/dev/null; then
            kill -s TERM "$2" 2>/dev/null
        fi
    } &
}

# --- In order ---

run_roles() {
    list_hosts
    tell_hosts
    trap on_roles_term TERM
    trap 'tl_signals="$tl_signals USR1"' USR1
    trap 'tl_signals="$tl_signals USR2"' USR2
    for tl_starting in $tl_step_roles; do
        load_number "$tl_starting"
        start_role "$tl_starting"
        await_ready "$tl_starting" || break
    done
    watch_life
    tl_looks=0
    while look && [ -z "$tl_verdict" ] && [ -n "$tl_running" ] && ! all_done; do
        tl_looks=$((tl_looks + 1))
        if [ "$tl_looks" -lt 50 ]; then pause 0.2; else pause 1; fi
    done
    judge_roles
}

# After TERM the roles have been told to end, and Slurm sees to it that they do.
judge_roles() {
    stop_watch
    while [ -n "$tl_told" ] && [ -n "$tl_running" ]; do
        pause 0.3
        look
    done
    if [ -n "$tl_verdict" ]; then
        end_roles
    elif [ -n "$tl_stopped" ] && { [ -n "$tl_saved" ] || ! all_done; }; then
        judge_stopped
    elif all_done; then
        tl_told=1
        end_roles
        decide 'done' '' 0
    else
        blame "${tl_starting:-}"
    fi
    tl_srun_code=''
    # What is asked about ranks from here on is about those of the role that failed; others may have ended since.
    if [ -n "$tl_job_role" ]; then load_role "$tl_job_role"; else tl_exits=$tl_own_dir/exit; fi
}
