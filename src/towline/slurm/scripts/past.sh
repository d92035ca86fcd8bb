# shellcheck shell=sh
# shellcheck disable=SC2034,SC2154  # who reads this file reads and sets these
# No command here has two `$(…)` side by side: a signal that comes during the first has bash 5.2 run its trap in the middle of
# reading the second, which ends the shell with a syntax error.
#
# What earlier attempts of a job have cost, from their decisions (launch/records.py). Read by the supervisor on the node, and
# by again.sh on a login host: both come to the same end.

# field NAME FILE: the value of the line NAME=… there.
field() {
    sed -n "s/^$1=//p" "$2" 2>/dev/null | head -n 1
}

# joined LIST…: lists of node names as one; jobs can write where they come from.
joined() {
    printf '%s\n' "$@" | tr -cd 'A-Za-z0-9._,\n[]-' | tr '\n' ',' | sed -e 's/,,*/,/g' -e 's/^,//' -e 's/,$//'
}

# within SECONDS COMMAND…
within() {
    if command -v timeout >/dev/null 2>&1; then
        timeout "$@"
    else
        shift
        "$@"
    fi
}

# newest_checkpoint RESULTS PATTERN: time, size and name of the newest file that the spec's pattern means; nothing when there is
# none.
newest_checkpoint() (
    [ -n "$2" ] && cd "$1" 2>/dev/null || exit
    IFS=
    # shellcheck disable=SC2086  # it is a pattern
    set -- $2
    LC_ALL=C stat -c '%Y %s %n' -- "$@" 2>/dev/null | LC_ALL=C sort -n | tail -n 1
)

# count_past DIR NUMBER PART: sets how many new starts faults have cost before attempt NUMBER, how many ends in a row came
# without progress, and which nodes were found bad. An attempt without a decision was ended by Slurm, or with its node; of these
# tl_unbegun never began: their nodes did not come up.
count_past() {
    tl_faults=0 tl_unbegun=0 tl_idle=0 tl_bad='' tl_each=1
    while [ "$tl_each" -lt "$2" ]; do
        tl_was=$1/attempts/$tl_each$3/decision
        tl_bad=$(joined "$tl_bad" "$(field nodes "$tl_was")")
        tl_moved=$(field progress "$tl_was")
        [ -e "$tl_was" ] || [ -e "${tl_was%decision}start" ] || tl_unbegun=$((tl_unbegun + 1))
        tally "$(field class "$tl_was")/$tl_moved"
        tl_each=$((tl_each + 1))
    done
}

# tally CLASS/PROGRESS
tally() {
    case $1 in
    paused/*) return ;;
    time/yes) tl_idle=0 ;;
    time/*) tl_idle=$((tl_idle + 1)) ;;
    ambiguous/yes) tl_idle=0 tl_faults=$((tl_faults + 1)) ;;
    ambiguous/*) tl_idle=$((tl_idle + 1)) tl_faults=$((tl_faults + 1)) ;;
    */yes) tl_idle=0 tl_faults=$((tl_faults + 1)) ;;
    *) tl_faults=$((tl_faults + 1)) ;;
    esac
}

# has_budget RETRIES PATIENCE: whether an end of class tl_class with tl_progress may cost one more start; else sets why not.
has_budget() {
    if [ "$tl_class" = paused ]; then
        return 0
    elif [ "$tl_class" != 'time' ] && [ "$tl_faults" -ge "$1" ]; then
        tl_why="it was started again as often as allowed (retries: $1)"
    elif is_idle && [ "$tl_idle" -ge "$2" ]; then
        tl_why="it made no progress in $((tl_idle + 1)) starts in a row"
    else
        return 0
    fi
    return 1
}

is_idle() {
    case $tl_class in 'time' | ambiguous) [ "$tl_progress" != yes ] ;; *) return 1 ;; esac
}

# exclude_from BATCH COPY: sets tl_batch, the script that is submitted, and tl_word, the option for it. sbatch's own option would
# be about the first component of a heterogeneous job only, which so gets a script with it in each.
exclude_from() {
    tl_batch=$1 tl_word=${tl_exclude:+--exclude=$tl_exclude}
    if [ -n "$tl_exclude" ] && grep -q '^#SBATCH hetjob$' "$1"; then
        with_exclusion "$1" >"$2" && tl_batch=$2 tl_word=''
    fi
}

# with_exclusion BATCH: the script with tl_exclude at the end of each component's options; the last of two counts.
with_exclusion() {
    tl_option="#SBATCH --exclude=$tl_exclude" awk '
        !tl_over && ($0 == "#SBATCH hetjob" || !/^#/) { print ENVIRON["tl_option"]; tl_over = !/^#/ }
        { print }' "$1"
}

# choose_exclusion BATCH ALWAYS EARLIER NOW: sets tl_exclude to every node that was found bad; but where too few others are
# left, the job had better run on one of these than never.
choose_exclusion() {
    tl_exclude=$(joined "$2" "$3" "$4")
    leaves_too_few "$1" "$2" || return 0
    tl_exclude=$(joined "$2" "$4")
    leaves_too_few "$1" "$2" || return 0
    tl_exclude=$2
}

leaves_too_few() {
    [ "$tl_exclude" != "$2" ] || return 1
    exclude_from "$1" "$1.excluding"
    ! tl_said=$(within 30 sbatch --test-only ${tl_word:+"$tl_word"} "$tl_batch" 2>&1 </dev/null) || return 1
    ! printf '%s\n' "$tl_said" | grep -q -i -e 'node configuration is not available' -e 'Invalid node name' || return 0
    # sbatch cannot tell: a site may forbid it on its nodes.
    [ -n "${SLURM_JOB_PARTITION:-}" ] && [ -z "${SLURM_HET_SIZE:-}" ] || return 1
    [ "$(left_over "$SLURM_JOB_PARTITION")" -lt "${tl_heal_nodes:-1}" ]
}

# left_over PARTITION: how many of its nodes tl_exclude leaves, whatever their state; 0 when nobody says.
left_over() {
    {
        within 30 scontrol show hostnames "$tl_exclude" </dev/null
        echo :
        within 30 sinfo --noheader --Node "--partition=$1" --format=%N </dev/null | sort -u
    } 2>/dev/null | awk '$0 == ":" { told = 1; next } !told { out[$1] = 1; next } !($1 in out) { left++ } END { print left + 0 }'
}
