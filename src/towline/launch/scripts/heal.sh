# shellcheck shell=sh
# shellcheck disable=SC2154  # the supervisor and script/heal set them
# shellcheck disable=SC2034  # the supervisor reads them
# Read by the supervisor: what an attempt's end means, whether there is a next attempt, and how that is started.
#
# Files: attempts/<n>/ decision, wanted, checkpoint (see launch/records.py); of a task of an array in its own directory.
# script/settings sets tl_heal_… (see launch/healing.py).

# shellcheck source=src/towline/slurm/scripts/past.sh
. "$TOWLINE_JOB_DIR/script/past.sh"

tl_part=${tl_task:+/task-$tl_task}
tl_results=$TOWLINE_JOB_DIR/results${tl_task:+/$tl_task}
tl_tab=$(printf '\t')
tl_class='' tl_why='' tl_nodes='' tl_next=no tl_progress='' tl_evidence=''

# --- Checkpoints ---

# What the command finds when it starts; it is told to resume when there is something to resume from.
note_checkpoint() {
    tl_before=$(newest_checkpoint "$tl_results" "$tl_heal_checkpoints")
    # Whoever judges the end for this script, should it be killed, compares with this.
    [ -z "$tl_heal_checkpoints" ] || put checkpoint "$tl_before"
    unset TOWLINE_RESUME
    if [ "$tl_number" -gt 1 ] && { [ -n "$tl_before" ] || [ -z "$tl_heal_checkpoints" ]; }; then
        export TOWLINE_RESUME=1
    fi
}

see_progress() {
    tl_progress=''
    if [ -n "$tl_heal_checkpoints" ]; then
        tl_after=$(newest_checkpoint "$tl_results" "$tl_heal_checkpoints")
        if [ -n "$tl_after" ] && [ "$tl_after" != "$tl_before" ]; then tl_progress=yes; else tl_progress=no; fi
    elif [ -n "$tl_heal_exit_code" ] && [ "$tl_job_code" = "$tl_heal_exit_code" ]; then
        tl_progress=yes # the command says so itself
    fi
}

# --- What the end means ---

# classify: sets the class, and for faults of nodes which ones.
classify() {
    tl_class=user tl_retry=yes
    case $tl_verdict/$tl_reason in
    done/* | cancelled/*) tl_class=$tl_verdict ;;
    stopped/*) classify_stop ;;
    */time) tl_class='time' ;;
    */check) tl_class=node ;; # its nodes are known already
    */torn) tl_class=infrastructure ;;
    */no-container) tl_class=node tl_nodes=$(nodes_with "$tl_no_container unstarted") ;;
    */exit)
        if [ -n "$tl_heal_exit_code" ] && [ "$tl_job_code" = "$tl_heal_exit_code" ]; then
            tl_class='time'
        else
            classify_failure
        fi
        ;;
    *) classify_failure ;;
    esac
    if [ "$tl_class" = ambiguous ] && has_successor; then
        tl_class=node tl_evidence="the node was cut off, and attempt $((tl_number + 1)) had begun elsewhere"
    fi
}

# Slurm's words about a signal stand in the file that it opened, before the signal comes.
classify_stop() {
    tl_class=stopped
    tl_words=$(tail -c "+$((tl_err_size + 1))" "$tl_slurm_err" 2>/dev/null | tail -n 200 |
        sed -n "s/.*\*\*\* JOB $SLURM_JOB_ID ON .* CANCELLED AT .* DUE TO \([A-Z ]*[A-Z]\) .*/\1/p" | tail -n 1)
    [ ! -e "$TOWLINE_JOB_DIR/paused" ] || tl_words=PAUSED
    case $tl_words in
    PAUSED) tl_class=paused ;;
    'TIME LIMIT') tl_class='time' ;;
    PREEMPTION) [ "$(restarts_now)" != "$tl_restarts" ] || tl_class=preempted ;;
    esac
}

# A preempted job that Slurm has put back into the queue has one start more already.
restarts_now() {
    scontrol show job "$SLURM_JOB_ID" 2>/dev/null | sed -n 's/.* Restarts=\([0-9]*\) .*/\1/p' | head -n 1
}

# nodes_with RECORD: the nodes of the ranks that left this record.
nodes_with() {
    joined "$(sed -n "s/^$1 //p" "$tl_exits"/[0-9]* 2>/dev/null | sort -u)"
}

classify_failure() {
    tl_retry=no tl_evidence='' tl_class=none
    search_logs
    if [ "$tl_class" != memory ] && check_again; then return; fi
    if [ "$tl_reason/$tl_class" = hung/ambiguous ]; then tl_evidence=$(words_of_hang); fi
    # A command that never ran did nothing wrong; Slurm refuses steps for a moment when a node has just come back.
    if [ "$tl_reason/$tl_class" = launch/user ]; then tl_class=ambiguous tl_retry=yes; fi
    [ "$tl_class" = none ] || return 0
    tl_class=user tl_retry=no
    case $tl_reason/$tl_job_code in
    launch/* | lost/* | step/*) tl_class=ambiguous ;;
    exit/1) ! log_is_empty || tl_class=ambiguous tl_evidence='exit code 1, and nothing in its log' ;;
    exit/137) tl_class=ambiguous tl_evidence='exit code 137: somebody killed it' ;;
    esac
    [ "$tl_class" = user ] || tl_retry=yes
}

words_of_hang() {
    printf 'no byte in its logs and no GPU in use for %s s; what its processes did is in %s' "$tl_heal_hang" \
        "attempts/$tl_number${tl_task:+/task-$tl_task}/stacks"
}

# log_is_empty: but for what srun and slurmstepd tell of every failure.
log_is_empty() {
    [ -z "$tl_task$tl_step_roles$tl_step_logs" ] && [ ! -s "$tl_log.out" ] &&
        ! grep -a -v -q -e '^srun: ' -e '^slurmstepd' -e '^towline: ' "$tl_log.err" 2>/dev/null
}

# search_logs: what the rules make of the logs and of the end. A task of an array has its logs beside those of the others.
search_logs() {
    write_facts >"$tl_own_dir/facts"
    tl_words=''
    [ -z "$tl_task" ] || tl_words="main-$tl_task.err main-$tl_task.out task-$tl_task"
    # shellcheck disable=SC2086  # three names
    /bin/sh "$TOWLINE_JOB_DIR/script/search.sh" "$TOWLINE_JOB_DIR/script/rules" "$tl_own_dir/facts" 20 67108864 \
        "$tl_attempt_dir" $tl_words 2>/dev/null </dev/null | sed -n 's/^verdict.//p' >"$tl_own_dir/found"
    tl_found='' tl_blame=no
    # CLASS RETRY BLAME RULE NODE RANK FILE OFFSET LINE, tabs between
    IFS=$tl_tab read -r tl_found tl_retry tl_blame _ tl_node _ _ _ tl_line <"$tl_own_dir/found"
    case $tl_found in
    '' | none) return ;;
    esac
    tl_class=$tl_found tl_evidence=$(printf '%s' "$tl_line" | cut -c 1-300)
    # A line that names no node is most likely of the rank that failed first.
    case $tl_blame/$tl_node in
    yes/-) tl_nodes=$(joined "$(node_of_rank "$tl_job_rank")") ;;
    yes/*) tl_nodes=$(joined "$tl_node") ;;
    *) [ "$tl_class" != node ] || tl_nodes=$(joined "$(node_of_rank "$tl_job_rank")") ;;
    esac
}

write_facts() {
    tl_hosts=$(job_hosts | tr '\n' ' ')
    printf 'nodes %s\n' "${tl_hosts:-$(only_node)}"
    printf 'rank %s\n' "$tl_job_rank"
    # What a rank left: CODE KIND NODE.
    for tl_file in "$tl_exits"/[0-9]*; do
        [ -f "$tl_file" ] && read -r _ _ tl_node <"$tl_file" && printf 'on %s %s\n' "${tl_file##*/}" "$tl_node"
    done
    printf 'end verdict=%s\nend reason=%s\nend code=%s\n' "$tl_verdict" "$tl_reason" "$tl_job_code"
}

# node_of_rank RANK: the node of that rank, as its prelude wrote it.
node_of_rank() {
    tl_found=''
    is_number "${1:-}" && [ -f "$tl_exits/$1" ] && read -r _ _ tl_found <"$tl_exits/$1"
    printf '%s' "${tl_found:-$(only_node)}"
}

# --- Whether to go on ---

# decide_next: writes down what the end means and whether there is a next attempt, before anything is done about it.
decide_next() {
    classify
    see_progress
    count_past "$TOWLINE_JOB_DIR" "$tl_number" "$tl_part"
    tl_next=no tl_why=''
    case $tl_class in
    'done' | cancelled | stopped | paused) ;;
    *)
        if [ "$tl_retry" = no ]; then
            tl_why=$(words_of_class)
        elif may_go_on; then
            tl_next=yes
        fi
        ;;
    esac
    note_decision
}

words_of_class() {
    case $tl_class in
    memory) printf 'it used more memory than it had asked for%s' "$(memory_words)" ;;
    user) printf 'the command itself failed' ;;
    *) printf 'the same would come of another start' ;;
    esac
}

# may_go_on: sets why, and returns 1 when there is no next attempt.
may_go_on() {
    if is_cancelled; then
        tl_why='it was cancelled'
    elif [ "$tl_heal_restart" = never ] && [ "$tl_class" != paused ]; then
        tl_why='the job forbids new starts (restart: never)'
    elif { [ "$tl_class" = 'time' ] || [ "$tl_retry" = resume ]; } && [ -z "$tl_heal_checkpoints$tl_heal_exit_code" ]; then
        tl_why='it does not say how it can resume (see resume in the job'"'"'s description)'
    else
        has_budget "$tl_heal_retries" "$tl_heal_patience"
        return
    fi
    return 1
}

note_decision() {
    put decision "class=$tl_class" "next=$tl_next" "why=$tl_why" "nodes=$tl_nodes" "progress=$tl_progress" \
        "evidence=$tl_evidence" "time=$(date +%s)"
}

# memory_words: the peak and the limit, where the control groups tell (bytes; version 2, then 1).
memory_words() {
    tl_limit=${SLURM_MEM_PER_NODE:-}
    tl_peak=$(sacct_peak)
    printf '%s%s' "${tl_peak:+; its peak was $tl_peak}" "${tl_limit:+; the limit is $tl_limit MiB on each node}"
}

# sacct_peak: the largest resident size of a task so far, as Slurm's samples have it.
sacct_peak() {
    within 10 sstat --noheader --parsable2 --allsteps --format=MaxRSS --jobs="$SLURM_JOB_ID" 2>/dev/null </dev/null |
        sort -h | tail -n 1
}

# leave_if_spent: Slurm itself starts a job again without counting; the budget holds all the same. Starts that never began cost no
# node's time, and somebody may have let the job try again after them.
leave_if_spent() {
    count_past "$TOWLINE_JOB_DIR" "$tl_number" "$tl_part"
    [ $((tl_faults - tl_unbegun)) -gt "$tl_heal_retries" ] || return 0
    tl_class=ambiguous tl_why="it was started again as often as allowed (retries: $tl_heal_retries)"
    say "$tl_why"
    tl_evidence="attempt $((tl_number - 1)) left no end: its node failed, or Slurm ended it"
    decide failed spent 1
    note_decision
    note_end
    exit "$tl_job_code"
}

# leave_if_done: Slurm starts a job again, too, of whose end slurmctld has not heard before the node was lost.
leave_if_done() {
    [ "$(field class "$TOWLINE_JOB_DIR/attempts/$((tl_number - 1))$tl_part/decision")" = 'done' ] || return 0
    tl_class='done'
    say "attempt $((tl_number - 1)) was done; Slurm had not heard of it"
    decide 'done' '' 0
    note_decision
    note_end
    exit 0
}

# --- The next attempt ---

# has_successor: somebody else has taken this attempt for dead, and was faster. The list is read for network file systems, which
# remember for a while that a name was not there.
has_successor() {
    for _ in "$TOWLINE_JOB_DIR"/attempts/*; do :; done
    [ -d "$TOWLINE_JOB_DIR/attempts/$((tl_number + 1))$tl_part" ]
}

# watch_successor PID: ends a step's srun without a word once there is one. A job that Slurm has put back has the same ids, so what
# the srun of a node that was cut off asks for (its tasks end, or another node is lost: to end its step) would end the new one.
# srun knows nothing of VTALRM; after KILL the shell would write `Killed` into the log, as after the kernel ran out of memory.
watch_successor() {
    (
        until has_successor; do sleep 2; done
        kill -s VTALRM "$1"
    ) >/dev/null 2>&1 </dev/null &
    tl_successor_watch=$!
}

stop_successor_watch() {
    stop_helper "$tl_successor_watch"
    [ "$tl_srun_code" != 154 ] || tl_srun_code=$tl_by_signal
}

start_next() {
    [ "$tl_next" = yes ] || return 0
    ! has_successor || return 0
    choose_exclusion "$TOWLINE_JOB_DIR/script/batch" "$tl_heal_exclude" "$tl_bad" "$tl_nodes"
    ! is_being_paused || return 0
    say "attempt $tl_number: $tl_class${tl_evidence:+ ($tl_evidence)}; the next attempt follows${tl_exclude:+, without $tl_exclude}"
    requeue_itself || submit_itself || want
}

# is_being_paused: a client is putting the job back itself, to be held (see slurm/scripts/pause.sh): this shell is told to end
# then. Where that fails the client takes its mark away.
is_being_paused() {
    tl_waited=0
    while [ -e "$TOWLINE_JOB_DIR/paused" ] && [ "$tl_waited" -lt 30 ]; do
        if [ -n "$tl_told" ]; then
            leave_out
            return 0
        fi
        tl_waited=$((tl_waited + 1))
        sleep 0.5 2>/dev/null || sleep 1
    done
    return 1
}

want() {
    put wanted "exclude=$tl_exclude" "time=$(date +%s)"
    say 'nothing can be started from here; the next client that looks does it'
}

# requeue_itself: the same Slurm job again. What it may not run on can be said once it is pending (the update of a running
# job is refused), and for that there is the time until Slurm kills this shell (KillWait). Seen on 22.05.
requeue_itself() {
    [ -z "$tl_told" ] && command -v scontrol >/dev/null 2>&1 || return 1
    trap 'tl_told=1' TERM
    within 60 scontrol requeue "$SLURM_JOB_ID" >"$tl_own_dir/.requeue" 2>&1 </dev/null || return 1
    # Whoever cancels the job at this moment may have found it ended, and now it is pending.
    ! is_cancelled || scancel "$SLURM_JOB_ID" >/dev/null 2>&1 </dev/null
    leave_out
    if mkdir -p "$TOWLINE_JOB_DIR/attempts/$((tl_number + 1))$tl_part" && [ -z "$tl_task" ]; then
        printf '%s\n' "$SLURM_JOB_ID" >"$TOWLINE_JOB_DIR/attempts/$((tl_number + 1))/.submit.$$" &&
            mv -f "$TOWLINE_JOB_DIR/attempts/$((tl_number + 1))/.submit.$$" "$TOWLINE_JOB_DIR/attempts/$((tl_number + 1))/submit"
    fi
}

# leave_out: keeps this job, which is pending by now, from the bad nodes.
leave_out() {
    tl_tries=0
    while [ -n "$tl_exclude" ] && [ "$tl_tries" -lt 20 ]; do
        ! scontrol update "JobId=$SLURM_JOB_ID" "ExcNodeList=$tl_exclude" >/dev/null 2>&1 </dev/null || break
        tl_tries=$((tl_tries + 1))
        sleep 0.2 2>/dev/null || sleep 1
    done
}

# submit_itself: a new Slurm job, through the same program as a client's submission. A task of an array is none.
submit_itself() {
    [ -z "$tl_task" ] && command -v sbatch >/dev/null 2>&1 || return 1
    tl_to=$((tl_number + 1))
    tl_scratch=$(mktemp -d 2>/dev/null) || return 1
    exclude_from "$TOWLINE_JOB_DIR/script/batch" "$tl_scratch/batch"
    (
        cd "$tl_scratch" || exit 1
        [ ! -f "$TOWLINE_JOB_DIR/script/setup" ] || cp "$TOWLINE_JOB_DIR/script/setup" ./setup
        /bin/sh "$TOWLINE_JOB_DIR/script/submit" "$TOWLINE_JOB_DIR" "$tl_to" "$tl_heal_name-a$tl_to" "$tl_heal_timeout" \
            "$(date +%s)" "attempt $tl_number on $(uname -n)" \
            sbatch --parsable "--job-name=$tl_heal_name-a$tl_to" "--output=$tl_heal_logs/$tl_to/main.out" \
            "--error=$tl_heal_logs/$tl_to/main.err" ${tl_heal_depends:+--dependency=} ${tl_heal_begins:+--begin=now} \
            ${tl_word:+"$tl_word"} "$tl_batch" "$tl_to"
    ) >"$tl_own_dir/.resubmit" 2>&1
    tl_submitted=$?
    rm -rf "$tl_scratch"
    case $tl_submitted in
    0 | 46 | 47) return 0 ;; # there is one; it is cancelled; somebody else is at it
    *) return 1 ;;
    esac
}

# --- The attempt before this one ---

# A node that was cut off may run the last attempt still. Its tasks look for a successor every few seconds and end when
# there is one (see prelude.sh), so this one waits for longer than that, unless the last one has written its end.
await_predecessor() {
    tl_before_dir=$TOWLINE_JOB_DIR/attempts/$((tl_number - 1))$tl_part
    [ -e "$tl_before_dir/start" ] && [ ! -e "$tl_before_dir/end" ] || return 0
    say "attempt $((tl_number - 1)) has left no end; its tasks get 10 s to see that this one has begun"
    sleep 10
}
