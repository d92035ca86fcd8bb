# shellcheck shell=sh
# shellcheck disable=SC2154  # the supervisor and the step sets them
# shellcheck disable=SC2034  # the supervisor reads them
# Read by the supervisor: how the step went, from the records of its ranks.

tl_by_signal=143 tl_hung=124 # as timeout(1) has it

is_number() {
    case $1 in '' | *[!0-9]* | ????????*) return 1 ;; esac
}

is_code() {
    is_number "$1" && [ "$1" -le 255 ]
}

# read_exit RANK: sets `tl_code` and `tl_kind`. The job can write there itself, so nothing is taken unseen.
read_exit() {
    tl_code='' tl_kind=''
    [ -f "$tl_exits/$1" ] && read -r tl_code tl_kind _ <"$tl_exits/$1"
    is_code "$tl_code"
}

failed_by_itself() {
    is_number "$1" && read_exit "$1" && [ "$tl_code" -ne 0 ] && [ "$tl_kind" != signal ]
}

# Reads every rank's record: how many there are, how many say success, how many were told to stop, and the lowest rank
# that failed by itself.
read_exits() {
    tl_recorded=0 tl_succeeded=0 tl_obeyed=0 tl_culprit='' tl_own_code='' tl_rank=0
    while [ "$tl_rank" -lt "$tl_step_tasks" ]; do
        if read_exit "$tl_rank"; then
            tl_recorded=$((tl_recorded + 1))
            [ "$tl_code" -ne 0 ] || tl_succeeded=$((tl_succeeded + 1))
            [ "$tl_kind" != signal ] || tl_obeyed=$((tl_obeyed + 1))
            # One that was told to stop may say something by its code; one that died of the signal does not.
            if [ -z "$tl_own_code" ] && [ "$tl_code" -ne 0 ] && [ "$tl_code" -lt 128 ]; then tl_own_code=$tl_code; fi
            [ -n "$tl_culprit" ] || ! failed_by_itself "$tl_rank" || tl_culprit=$tl_rank
        fi
        tl_rank=$((tl_rank + 1))
    done
}

# srun reports 143 for the siblings that it killed, so the rank that failed first gives the code. Without its mark
# (the disk was full) the lowest such rank does. Leaves that rank's `tl_code` and `tl_kind`.
find_culprit() {
    tl_first=
    [ -f "$tl_exits/first" ] && read -r tl_first <"$tl_exits/first"
    if failed_by_itself "$tl_first"; then tl_culprit=$tl_first; fi
    failed_by_itself "$tl_culprit"
}

# decide VERDICT REASON CODE [RANK]
decide() {
    tl_verdict=$1 tl_reason=$2 tl_job_code=$3 tl_job_rank=${4-}
}

judge_stopped() {
    if is_cancelled; then
        decide cancelled cancelled 143
    else
        decide stopped stopped 143
    fi
}

judge_culprit() {
    if [ "$tl_kind" = unstarted ] && [ "$tl_code" -eq "$tl_no_container" ]; then
        decide failed no-container "$tl_code" "$tl_culprit"
    else
        decide failed exit "$tl_code" "$tl_culprit"
    fi
}

# Each prelude begins its record before it runs the command.
any_began() {
    for tl_record in "$tl_exits"/.[0-9]*; do
        [ ! -e "$tl_record" ] || return 0
    done
    [ "$tl_recorded" -gt 0 ]
}

# No rank says what went wrong; srun's code is what is left, and is never taken for success.
judge_step() {
    tl_fallback=$tl_srun_code
    [ "$tl_fallback" -ne 0 ] || tl_fallback=1
    if ! any_began; then
        decide failed launch "$tl_fallback"
    elif [ "$tl_recorded" -lt "$tl_step_tasks" ]; then
        decide failed lost "$tl_fallback"
    else
        decide failed step "$tl_fallback"
    fi
}

all_succeeded() {
    [ "$tl_srun_code" -eq 0 ] && [ "$tl_succeeded" -eq "$tl_step_tasks" ]
}

# A command that saves its state on TERM and ends with 0 has stopped, and is not done; one that had ended before is.
judge() {
    read_exits
    if [ -n "$tl_stopped" ] && { [ "$tl_obeyed" -gt 0 ] || ! all_succeeded; }; then
        judge_stopped
    elif [ "$tl_obeyed" -gt 0 ] && has_successor; then
        judge_step
    elif all_succeeded && ! { [ -n "$tl_heal_checkpoints$tl_heal_exit_code" ] && was_warned; }; then
        decide 'done' '' 0
    elif is_hung; then
        decide failed hung "$tl_hung"
    elif find_culprit; then
        judge_culprit
    elif was_warned; then
        decide failed 'time' "${tl_own_code:-$tl_by_signal}"
    else
        judge_step
    fi
}

# was_warned: ranks ended on the signal that Slurm sends before the walltime is over; it may come a minute early (sbatch(1),
# --signal), and this script was started somewhat later than the job.
was_warned() {
    [ -n "$tl_heal_limit" ] && [ -n "$tl_heal_grace" ] && [ -z "$tl_told" ] && [ "$tl_obeyed" -gt 0 ] &&
        [ "$(date +%s)" -ge $((tl_began + tl_heal_limit - tl_heal_grace - 90)) ]
}
