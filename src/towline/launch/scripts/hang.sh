# shellcheck shell=sh
# shellcheck disable=SC2154  # the supervisor and script/settings set them
# shellcheck disable=SC2034  # the supervisor reads them
# Read by the supervisor: watches a job that is to be taken for hung when it shows no sign of life for tl_heal_hang seconds.
#
# A sign is a byte more in a log, a GPU in use on any node, and a file in the results that changed (a large checkpoint takes
# long, and nothing else happens meanwhile). Time is counted in pauses: a job that was suspended has not been silent.
# Files of the attempt: use/<node> (see use.sh); stacks/<node> and stacks/log, what its processes were doing; hung, once it was.

tl_watch=''

# watch_life [PID]: PID is the step's srun, which is ended; the supervisor of roles looks for `hung` itself.
watch_life() {
    [ -n "$tl_heal_hang" ] || return 0
    watch_quietly "${1-}" >/dev/null 2>&1 </dev/null &
    tl_watch=$!
}

# stop_watch: a job that was found hung may have ended of what is done to it, and that is to be finished.
stop_watch() {
    [ -n "$tl_watch" ] || return 0
    is_hung || stop_helper "$tl_watch"
    wait "$tl_watch" 2>/dev/null
    tl_watch=''
}

is_hung() {
    [ -e "$tl_own_dir/hung" ]
}

# A process that has ended and was not waited for yet is a zombie, state Z (proc(5)).
has_left() {
    kill -0 "$1" 2>/dev/null || return 0
    [ -r "/proc/$1/stat" ] || return 1
    { read -r tl_stat <"/proc/$1/stat"; } 2>/dev/null || return 0
    case ${tl_stat##*) } in Z*) return 0 ;; *) return 1 ;; esac
}

# stop_helper PID: told again and again, for a child that is signalled before it has dropped its parent's traps loses the signal.
stop_helper() {
    kill "$1" 2>/dev/null
    until has_left "$1"; do
        sleep 0.02 2>/dev/null || sleep 1
        kill "$1" 2>/dev/null
    done
    wait "$1" 2>/dev/null
}

# abide COMMAND…: runs it so that TERM ends both this shell and the command.
abide() {
    "$@" &
    tl_doing=$!
    wait "$tl_doing"
}

watch_quietly() {
    tl_doing='' tl_asking='' tl_signs='' tl_quiet=0
    trap 'kill $tl_doing $tl_asking 2>/dev/null; exit 0' TERM
    tl_pause=$((tl_heal_hang / 20))
    [ "$tl_pause" -ge 1 ] || tl_pause=1
    [ "$tl_pause" -le 15 ] || tl_pause=15
    # A container may take long to start, and says nothing.
    until any_rank_began; do abide sleep "$tl_pause"; done
    until is_silent; do abide sleep "$tl_pause"; done
    trap '' TERM # it is finished now
    end_hung "$1"
}

any_rank_began() {
    for tl_record in "$tl_own_dir"/exit/.[0-9]* "$tl_own_dir"/roles/*/exit/.[0-9]*; do
        [ ! -e "$tl_record" ] || return 0
    done
    return 1
}

# is_silent: one look. From half of the time on the GPUs are watched, too.
is_silent() {
    tl_now=$(log_signs)
    if [ "$tl_now" != "$tl_signs" ] || gpus_are_used; then
        tl_signs=$tl_now tl_quiet=0
        [ -z "$tl_asking" ] || kill "$tl_asking" 2>/dev/null
        tl_asking=''
        return 1
    fi
    tl_quiet=$((tl_quiet + tl_pause))
    if [ "$tl_quiet" -ge $((tl_heal_hang / 2)) ]; then
        [ -n "$tl_asking" ] || tl_files=$(result_signs)
        keep_asking
    fi
    [ "$tl_quiet" -ge "$tl_heal_hang" ] || return 1
    if [ "$tl_files" = "$(result_signs)" ] && gpus_were_asked; then return 0; fi
    tl_signs='' # begin anew
    return 1
}

# log_signs: name and size of each of its logs; those of other nodes are seen from here, too.
log_signs() {
    LC_ALL=C stat -c '%s %n' -- "$tl_log.out" "$tl_log.err" "$tl_own_dir"/roles/*/main.* \
        "$tl_own_dir/${tl_step_logs:-none}"/* "$tl_own_dir"/roles/*/"${tl_step_logs:-none}"/* 2>/dev/null
}

result_signs() {
    newest_checkpoint "$tl_results" "$tl_heal_checkpoints"
    LC_ALL=C within 120 find "$tl_results" -type f -exec stat -c '%s %Y %n' {} + 2>/dev/null | cksum
}

# --- The GPUs ---

# nodes_with_gpus: how many nodes have some.
nodes_with_gpus() {
    tl_expected=0
    for tl_entry in $tl_heal_groups; do
        [ "${tl_entry##*:}" -gt 0 ] || continue
        tl_entry=${tl_entry#*:}
        tl_expected=$((tl_expected + ${tl_entry%%:*}))
    done
    printf '%s\n' "$tl_expected"
}

# keep_asking: what asks stands still, too, while the job is suspended, but its time goes on; then it is started anew.
keep_asking() {
    if [ -n "$tl_asking" ]; then
        [ "$(date +%s)" -ge $((tl_asked + tl_heal_hang)) ] || return 0
        kill "$tl_asking" 2>/dev/null
    fi
    tl_asked=$(date +%s)
    ask_gpus &
    tl_asking=$!
}

# ask_gpus: for the other half of the time; each node ends when it has seen one in use.
ask_gpus() {
    rm -rf "$tl_own_dir/use"
    [ "$(nodes_with_gpus)" -gt 0 ] && mkdir "$tl_own_dir/use" || return 0
    tl_asks=''
    trap 'kill $tl_asks 2>/dev/null; exit 0' TERM
    for tl_entry in $tl_heal_groups; do
        [ "${tl_entry##*:}" -gt 0 ] || continue
        on_nodes "$tl_entry" "$tl_heal_hang" use "$tl_own_dir/use" "$((tl_heal_hang / 2))" "$tl_pause" &
        tl_asks="$tl_asks $!"
    done
    wait
}

gpus_are_used() {
    grep -q '^busy$' "$tl_own_dir"/use/* 2>/dev/null || return 1
    rm -rf "$tl_own_dir/use"
}

# gpus_were_asked: whether every node with GPUs has answered; where one was not even reached, nothing is known.
gpus_were_asked() {
    tl_expected=$(nodes_with_gpus)
    [ "$tl_expected" -gt 0 ] || return 0
    set -- "$tl_own_dir"/use/*
    [ -e "$1" ] && [ $# -ge "$tl_expected" ]
}

# --- The end ---

# end_hung [PID]: leaves the stacks, and ends the step.
end_hung() {
    mkdir -p "$tl_own_dir/stacks"
    put hung "seconds=$tl_heal_hang" "time=$(date +%s)"
    tl_sizes=$(log_signs)
    for tl_entry in $tl_heal_groups; do
        on_nodes "$tl_entry" 120 stacks "$tl_own_dir"
    done
    printf '%s\n' "$tl_sizes" | keep_said >"$tl_own_dir/stacks/log"
    [ -n "$1" ] || return 0
    kill -s TERM "$1" # makes srun kill the step
    tl_tries=0
    while [ "$tl_tries" -lt 60 ] && kill -0 "$1"; do
        tl_tries=$((tl_tries + 1))
        sleep 1
    done
    kill -s KILL "$1"
}

# keep_said: lines SIZE NAME; what the files have got beyond that size, which is what the programs say of themselves.
keep_said() {
    while read -r tl_size tl_name; do
        [ "$(wc -c <"$tl_name")" -gt "$tl_size" ] || continue
        printf '== %s\n' "${tl_name##*/attempts/}"
        tail -c "+$((tl_size + 1))" "$tl_name" | head -c 1048576
    done
}
