#!/bin/sh
# why.sh DIRECTORY SECONDS BYTES: searches the logs of a job's attempts for what ended them.
# ./targets has a line `ATTEMPT TASK ID CLUSTER NAME…` for each attempt: TASK is the number of an array's task, ID Slurm's
# id and CLUSTER Slurm's name of the cluster (`-` for none each). Beside it lie ./facts-1, ./facts-2 … (what is known so far
# of each), ./rules and ./search.sh (see launch/diagnosis/search.sh, which the NAMEs are for). SECONDS and BYTES are for
# all of them.
# Output: for each attempt a line `target<TAB>NUMBER`, a line `fact<TAB>…` for each fact, and then what search.sh prints.
# An attempt that there is no time for any more has no such lines.
# shellcheck source=src/towline/slurm/scripts/common.sh
. ./common.sh
# shellcheck source=src/towline/slurm/scripts/strangers.sh
. ./strangers.sh

# ask_slurm IDS CLUSTER: lines `ID slurm …` in ./asked. The steps' rows tell of memory that ran out in a step (the job
# itself only says FAILED then), the job's row its code with the signal, and what the site noted there: reapers of idle GPUs
# do (AdminComment, sacct(1)). Of the runs of a job the newest counts; those of other jobs that had its id do not.
ask_slurm() {
    find_slurm
    printf '%s\n' "$PATH" >./path
    tl_where=
    [ "$2" = - ] || tl_where=--clusters=$2
    sacct ${tl_where:+"$tl_where"} --duplicates --noheader --parsable2 --format=JobID,State,ExitCode,AdminComment,WorkDir \
        "--jobs=$1" </dev/null | awk -F '|' -v works="${tl_dir##*/}" '
        NF < 5 { next }
        { row = $1; sub(/[.].*/, "", row); id = row; sub(/[+].*/, "", id) }
        $1 ~ /[.]/ { # of the run whose row is above it
            sub(/^[^.]*[.]/, "", $1)
            if (!strange[row] && ++steps[row] <= 200) told[row] = told[row] id " slurm step=" $1 " " $2 " " $3 "\n"
            next
        }
        {
            place = $NF
            sub(/.*\//, "", place)
            # A record that came out of order has no directory for some seconds (seen on 22.05).
            strange[row] = $NF == "" ? row in whose : place != works
            if (strange[row]) next
            whose[row] = id; code[row] = $3; note[row] = told[row] = ""; steps[row] = 0
            for (i = 4; i < NF; i++) note[row] = note[row] (i > 4 ? "|" : "") $i
        }
        END {
            for (row in whose) {
                printf "%s", told[row]
                if (code[row] != "") print whose[row] " slurm exit=" code[row]
                # Some sites keep what is no text for people there, such as a summary of the use in base64.
                if (note[row] ~ /[ {]/) print whose[row] " slurm comment=" substr(note[row], 1, 500)
            }
        }' | tr -cd '[:print:]\n' >./asked
}

# told ID CLUSTER: what Slurm said of it. Where there is no accounting the controller still knows a job that ended a moment ago.
told() {
    sed -n "s/^$1 slurm /slurm /p" ./asked >./told
    [ -s ./told ] || is_stranger "$1" "$tl_dir" "$2" || scontrol ${tl_where:+"$tl_where"} show job "$1" </dev/null |
        sed -n 's/.*ExitCode=\([0-9]*:[0-9]*\).*/slurm exit=\1/p' | head -n 1 >./told
    cat ./told
}

# What the job wrote itself: its end, and where its ranks were, or those of the role that failed first.
read_own() {
    sed -n -e 's/^verdict=/end &/p' -e 's/^reason=/end &/p' -e 's/^code=/end &/p' -e 's/^rank=/rank /p' "$1/end"
    tl_failed=$(sed -n 's/^role=\([a-z0-9-]\{1,\}\)$/roles\/\1\//p' "$1/end" | head -n 1)
    (cd "$1/${tl_failed}exit" && grep -H '' [0-9]* /dev/null) | awk -F '[: ]' 'NF >= 4 && $4 != "" { print "on " $1 " " $4 }'
}

# explain NUMBER SECONDS BYTES ATTEMPT TASK ID NAME…
explain() {
    tl_nth=$1 tl_share=$2 tl_most=$3 tl_attempt=$tl_dir/attempts/$4 tl_own=$tl_dir/attempts/$4 tl_id=$6
    [ "$5" = - ] || tl_own=$tl_own/task-$5
    shift 6
    if [ ! -d "$tl_attempt" ]; then
        mkdir -p ./none
        tl_attempt=./none
    fi
    {
        cat "./facts-$tl_nth"
        [ -f "$tl_own/end" ] && [ ! -h "$tl_own/end" ] && read_own "$tl_own" | tr -cd '[:print:]\n' | head -n 20000
        [ "$tl_id" = - ] || told "$tl_id" "$tl_cluster"
    } 2>/dev/null >./all
    printf 'target\t%s\n' "$tl_nth"
    sed 's/^/fact	/' ./all
    /bin/sh ./search.sh ./rules ./all "$tl_share" "$tl_most" "$tl_attempt" "$@"
}

tl_dir=$1 tl_deadline=$(($(date +%s) + $2)) tl_where='' tl_number=0
tl_count=$(wc -l <./targets)
tl_bytes=$(($3 / tl_count))
tl_ids=$(awk '$3 != "-" { printf "%s%s", sep, $3; sep = "," }' ./targets)
printf '' >./asked
# In a subshell: a Slurm that cannot be found is no reason not to search.
[ -z "$tl_ids" ] || (ask_slurm "$tl_ids" "$(awk '{ print $4; exit }' ./targets)") 2>/dev/null
[ ! -s ./path ] || PATH=$(cat ./path)
while read -r tl_which tl_task tl_slurm tl_cluster tl_names <&3; do
    tl_number=$((tl_number + 1))
    tl_left=$((tl_deadline - $(date +%s)))
    [ "$tl_left" -gt 0 ] || break
    tl_share=$((tl_left / (tl_count - tl_number + 1)))
    [ "$tl_cluster" = - ] || tl_where=--clusters=$tl_cluster
    # shellcheck disable=SC2086 # names without blanks and patterns
    explain "$tl_number" "$((tl_share > 0 ? tl_share : 1))" "$tl_bytes" "$tl_which" "$tl_task" "$tl_slurm" $tl_names
done 3<./targets
