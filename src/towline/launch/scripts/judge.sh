# shellcheck shell=sh
# shellcheck disable=SC2154  # the supervisor and the step sets them
# shellcheck disable=SC2034  # the supervisor reads them
# Read by the supervisor: how the step went, from the records of its ranks.

by_signal=143

is_number() {
    case $1 in '' | *[!0-9]* | ????????*) return 1 ;; esac
}

is_code() {
    is_number "$1" && [ "$1" -le 255 ]
}

# read_exit RANK: sets `code` and `kind`. The job can write there itself, so nothing is taken unseen.
read_exit() {
    code='' kind=''
    [ -f "$exits/$1" ] && read -r code kind _ <"$exits/$1"
    is_code "$code"
}

failed_by_itself() {
    is_number "$1" && read_exit "$1" && [ "$code" -ne 0 ] && [ "$kind" != signal ]
}

# Reads every rank's record: how many there are, how many say success, how many were told to stop, and the lowest rank
# that failed by itself.
read_exits() {
    recorded=0 succeeded=0 obeyed=0 culprit='' tl_own_code='' rank=0
    while [ "$rank" -lt "$step_tasks" ]; do
        if read_exit "$rank"; then
            recorded=$((recorded + 1))
            [ "$code" -ne 0 ] || succeeded=$((succeeded + 1))
            [ "$kind" != signal ] || obeyed=$((obeyed + 1))
            # One that was told to stop may say something by its code; one that died of the signal does not.
            if [ -z "$tl_own_code" ] && [ "$code" -ne 0 ] && [ "$code" -lt 128 ]; then tl_own_code=$code; fi
            [ -n "$culprit" ] || ! failed_by_itself "$rank" || culprit=$rank
        fi
        rank=$((rank + 1))
    done
}

# srun reports 143 for the siblings that it killed, so the rank that failed first gives the code. Without its mark
# (the disk was full) the lowest such rank does. Leaves that rank's `code` and `kind`.
find_culprit() {
    first=
    [ -f "$exits/first" ] && read -r first <"$exits/first"
    if failed_by_itself "$first"; then culprit=$first; fi
    failed_by_itself "$culprit"
}

# decide VERDICT REASON CODE [RANK]
decide() {
    verdict=$1 reason=$2 job_code=$3 job_rank=${4-}
}

judge_stopped() {
    if is_cancelled; then
        decide cancelled cancelled 143
    else
        decide stopped stopped 143
    fi
}

judge_culprit() {
    if [ "$kind" = unstarted ] && [ "$code" -eq "$no_container" ]; then
        decide failed no-container "$code" "$culprit"
    else
        decide failed exit "$code" "$culprit"
    fi
}

# Each prelude begins its record before it runs the command.
any_began() {
    for began in "$exits"/.[0-9]*; do
        [ ! -e "$began" ] || return 0
    done
    [ "$recorded" -gt 0 ]
}

# No rank says what went wrong; srun's code is what is left, and is never taken for success.
judge_step() {
    fallback=$srun_code
    [ "$fallback" -ne 0 ] || fallback=1
    if ! any_began; then
        decide failed launch "$fallback"
    elif [ "$recorded" -lt "$step_tasks" ]; then
        decide failed lost "$fallback"
    else
        decide failed step "$fallback"
    fi
}

all_succeeded() {
    [ "$srun_code" -eq 0 ] && [ "$succeeded" -eq "$step_tasks" ]
}

# A command that saves its state on TERM and ends with 0 has stopped, and is not done; one that had ended before is.
judge() {
    read_exits
    if [ -n "$stopped" ] && { [ "$obeyed" -gt 0 ] || ! all_succeeded; }; then
        judge_stopped
    elif all_succeeded && ! { [ -n "$heal_checkpoints$heal_exit_code" ] && was_warned; }; then
        decide 'done' '' 0
    elif find_culprit; then
        judge_culprit
    elif was_warned; then
        decide failed 'time' "${tl_own_code:-$by_signal}"
    else
        judge_step
    fi
}

# was_warned: ranks ended on the signal that Slurm sends before the walltime is over; it may come a minute early (sbatch(1),
# --signal), and this script was started somewhat later than the job.
was_warned() {
    [ -n "$heal_limit" ] && [ -n "$heal_grace" ] && [ -z "$told" ] && [ "$obeyed" -gt 0 ] &&
        [ "$(date +%s)" -ge $((tl_began + heal_limit - heal_grace - 90)) ]
}
