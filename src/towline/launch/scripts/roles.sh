# shellcheck shell=sh
# shellcheck disable=SC2154  # the supervisor and the roles' step files set them
# shellcheck disable=SC2034  # the supervisor reads them
# Read by the supervisor of a job with roles: starts each role's step in turn, waits until it is ready where it says
# how that is seen, and ends all when one has failed or all but the services are done.
#
# Files: attempts/<n>/roles/<role>/ main.out, main.err, exit/, step and ready (the prelude of its first task writes them),
# and attempts/<n>/roles/.first, the role whose rank was the first to fail by itself.

roles_dir=$own_dir/roles
running='' finished='' saved='' signals='' service_left='' linger_until=0
end_patience=15 # seconds that roles get to end by themselves; Slurm kills what is left when this script is over

# load_role NAME: sets role, role_dir, exits, step_tasks and role_… as the role's step file has them.
load_role() {
    role=$1 role_dir=$roles_dir/$1 role_hosts=''
    exits=$role_dir/exit
    set_log_dir "$role_dir"
    # shellcheck source=/dev/null
    . "$TOWLINE_JOB_DIR/script/roles/$1/step"
}

# --- Which role runs where ---

# A heterogeneous job has a node list for each component; its roles are counted through all of them.
list_hosts() {
    hosts=$(
        if [ -z "${SLURM_HET_SIZE:-}" ]; then
            scontrol show hostnames "${SLURM_JOB_NODELIST:-}"
        else
            component=0
            while [ "$component" -lt "$SLURM_HET_SIZE" ]; do
                eval "scontrol show hostnames \"\$SLURM_JOB_NODELIST_HET_GROUP_$component\""
                component=$((component + 1))
            done
        fi 2>/dev/null
    )
    [ -n "$hosts" ] || give_up "scontrol does not say which nodes the job has, and the roles cannot be placed"
}

# role_nodes FIRST COUNT: the hosts' names with blanks between.
hosts_from() {
    printf '%s\n' "$hosts" | sed -n "$1,$(($1 + $2 - 1))p" | tr '\n' ' ' | sed 's/ $//'
}

# Every role is told of all others: TOWLINE_NODES_POLICY='node2 node3' for the role `policy`.
tell_hosts() {
    for each in $step_roles; do
        load_role "$each"
        export "TOWLINE_NODES_$(printf '%s' "$each" | tr 'a-z-' 'A-Z_')=$(hosts_from "$role_first" "$role_nodes")"
    done
}

# --- Starting and ending ---

# The subshell stands for the step: it passes signals on to srun and ends with its code.
start_role() {
    load_role "$1"
    mkdir -p "$exits" ${step_logs:+"$role_dir/$step_logs"} || give_up "cannot make $exits"
    names=$(hosts_from "$role_first" "$role_nodes")
    say "role $role starts on $names"
    (
        role_hosts=$(printf '%s' "$names" | tr ' ' ',')
        export TOWLINE_ROLE="$role" TOWLINE_READY_PORT="$role_port" TOWLINE_MASTER_ADDR="${names%% *}"
        export TOWLINE_MASTER_PORT="$((TOWLINE_MASTER_PORT + role_number))"
        # shellcheck disable=SC2317  # called from a trap
        on_term() {
            pass_on TERM 15
        }
        [ -z "${role_component:-}" ] || forget_first_component
        srun_code=1
        # shellcheck source=/dev/null
        . "$TOWLINE_JOB_DIR/script/roles/$role/step"
        run_step "$@" >>"$role_dir/main.out" 2>>"$role_dir/main.err"
        exit "$srun_code"
    ) &
    eval "pid_$role_number=$!"
    running="$running $role"
}

# The batch script's variables are about the first component, and srun would ask for the same in another one.
forget_first_component() {
    unset SLURM_MEM_PER_CPU SLURM_MEM_PER_GPU SLURM_MEM_PER_NODE SLURM_CPUS_PER_TASK SLURM_CPUS_PER_GPU SLURM_GPUS \
        SLURM_GPUS_PER_NODE SLURM_GPUS_PER_TASK SLURM_GPUS_PER_SOCKET SLURM_NTASKS SLURM_NTASKS_PER_NODE SLURM_NPROCS \
        SLURM_TRES_PER_TASK SLURM_CONSTRAINT SLURM_PARTITION SLURM_JOB_PARTITION
}

# Sends what traps have noted to every role that still runs. A trap may come between any two commands, so it does not do
# it itself.
signal_roles() {
    sending=$signals signals=''
    for signal in $sending; do
        for each in $running; do
            load_number "$each"
            eval "kill -s $signal \"\$pid_$role_number\"" 2>/dev/null
        done
    done
}

load_number() {
    role_number=0
    for known in $step_roles; do
        role_number=$((role_number + 1))
        [ "$known" != "$1" ] || return 0
    done
}

# shellcheck disable=SC2317  # called from a trap
on_roles_term() {
    if [ -z "$told" ]; then
        put signal "signal=TERM" "time=$(date +%s)"
        [ -n "$verdict" ] || [ -e "$roles_dir/.first" ] || stopped=1
    fi
    told=1
    signals="$signals TERM"
}

# A trap runs when `wait` returns, so not only after the pause.
pause() {
    { sleep "$1" 2>/dev/null || sleep 1; } &
    wait $!
}

# A process that has ended and was not waited for yet is a zombie, state Z (proc(5)).
has_left() {
    kill -0 "$1" 2>/dev/null || return 0
    [ -r "/proc/$1/stat" ] || return 1
    { read -r stat <"/proc/$1/stat"; } 2>/dev/null || return 0
    case ${stat##*) } in Z*) return 0 ;; *) return 1 ;; esac
}

# --- Looking ---

# look: takes note of every role that has left since.
look() {
    signal_roles
    still=''
    for each in $running; do
        load_number "$each"
        eval "pid=\$pid_$role_number"
        if has_left "$pid"; then
            wait "$pid"
            note_left "$each" $?
        else
            still="$still $each"
        fi
    done
    running=$still
    if [ -n "$service_left" ] && [ -z "$verdict$told" ] && [ -n "$running" ] && [ "$(date +%s)" -gt "$linger_until" ]; then
        role=$service_left
        decide_role left 1
    fi
}

# note_left NAME CODE
note_left() {
    load_role "$1"
    srun_code=$2
    read_exits
    [ "$obeyed" -eq 0 ] || saved=1
    if all_succeeded; then
        finished="$finished $1"
        say "role $1 has ended"
        [ -z "$role_service" ] || note_service_left "$1"
        return
    fi
    if [ -n "$verdict$told" ]; then
        say "role $1 was ended"
        return
    fi
    blame "$1"
    # What srun says is often the code of a rank that was ended because another one had failed.
    if [ "$job_role" = "$1" ]; then
        say "role $1 has failed with exit code $job_code"
    else
        say "role $1 has failed after role $job_role"
    fi
}

note_service_left() {
    [ -z "$service_left" ] || return 0
    service_left=$1
    linger_until=$(($(date +%s) + role_linger))
}

# blame NAME: it left with a failure; whose is it? That of a service that left before, else of the first rank that
# failed by itself, whichever role's it is.
blame() {
    if [ -n "$service_left" ]; then
        role=$service_left
        [ "$srun_code" -ne 0 ] || srun_code=1
        decide_role left "$srun_code"
        return
    fi
    named=''
    [ -f "$roles_dir/.first" ] && read -r named <"$roles_dir/.first"
    for each_role in $step_roles; do
        [ "$each_role" = "$named" ] || continue
        load_role "$named"
        read_exits
        if find_culprit; then
            judge_culprit
            job_role=$named
            return
        fi
    done
    load_role "$1"
    read_exits
    if find_culprit; then judge_culprit; else judge_step; fi
    job_role=$1
}

# decide_role REASON CODE: about the role as a whole.
decide_role() {
    decide failed "$1" "$2"
    job_role=$role
}

# all_done: every role that is no service has ended well.
all_done() {
    for each in $step_roles; do
        load_role "$each"
        [ -z "$role_service" ] || continue
        case " $finished " in *" $each "*) ;; *) return 1 ;; esac
    done
}

# await_ready NAME: returns 1 when going on makes no sense.
await_ready() {
    load_role "$1"
    [ -n "$role_port" ] || return 0
    ready=$role_dir/ready port=$role_port patience=$role_patience until=$(($(date +%s) + role_patience))
    while [ ! -e "$ready" ]; do
        look
        [ -z "$verdict$told" ] || return 1
        case " $running " in *" $1 "*) gone='' ;; *) gone=1 ;; esac
        if [ -n "$gone" ] || [ "$(date +%s)" -gt "$until" ]; then
            role=$1
            say "role $1 did not listen on port $port${gone:+ before it ended}; it had $patience s"
            decide_role not-ready 1
            return 1
        fi
        pause 0.2
    done
    say "role $1 is ready"
}

# srun makes KILL of a TERM (it says "forcing job termination"), so Slurm is asked to pass the TERM on, by the number of the
# step, which the prelude has noted. Where that does not work, and after a while, srun is told all the same.
end_roles() {
    look
    for each in $running; do
        load_number "$each"
        eval "ask_to_end \"$each\" \"\$pid_$role_number\""
    done
    until=$(($(date +%s) + end_patience))
    while look && [ -n "$running" ]; do
        [ "$(date +%s)" -le "$until" ] || break
        pause 0.2
    done
    signals=TERM
    look
}

# ask_to_end NAME PID
ask_to_end() {
    step_id=''
    [ -f "$roles_dir/$1/step" ] && read -r step_id <"$roles_dir/$1/step"
    {
        if ! is_number "$step_id" || ! scancel --quiet --signal=TERM "$SLURM_JOB_ID.$step_id" </dev/null 2>/dev/null; then
            kill -s TERM "$2" 2>/dev/null
        fi
    } &
}

# --- In order ---

run_roles() {
    list_hosts
    tell_hosts
    trap on_roles_term TERM
    trap 'signals="$signals USR1"' USR1
    trap 'signals="$signals USR2"' USR2
    for next in $step_roles; do
        load_number "$next"
        start_role "$next"
        await_ready "$next" || break
    done
    looks=0
    while look && [ -z "$verdict" ] && [ -n "$running" ] && ! all_done; do
        looks=$((looks + 1))
        if [ "$looks" -lt 50 ]; then pause 0.2; else pause 1; fi
    done
    judge_roles
}

# After TERM the roles have been told to end, and Slurm sees to it that they do.
judge_roles() {
    while [ -n "$told" ] && [ -n "$running" ]; do
        pause 0.3
        look
    done
    if [ -n "$verdict" ]; then
        end_roles
    elif [ -n "$stopped" ] && { [ -n "$saved" ] || ! all_done; }; then
        judge_stopped
    elif all_done; then
        told=1
        end_roles
        decide 'done' '' 0
    else
        blame "${next:-}"
    fi
    srun_code=''
}
