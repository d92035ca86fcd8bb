#!/bin/sh
# why.sh DIRECTORY ATTEMPT TASK ID CLUSTER SECONDS BYTES NAME…: searches an attempt's logs for what ended it.
# TASK is the number of an array's task, ID Slurm's id and CLUSTER Slurm's name of the cluster (`-` for none each). Beside it lie
# ./facts (what is known so far), ./rules and ./search.sh (see launch/diagnosis/search.sh, which the NAMEs are for).
# Output: a line `fact<TAB>…` for each fact, and then what search.sh prints.
# shellcheck source=src/towline/slurm/scripts/common.sh
. ./common.sh

# The steps' rows tell of memory that ran out in a step (the job itself only says FAILED then), the job's row its code
# with the signal. Where there is no accounting the controller still knows a job that ended a moment ago.
ask_slurm() {
    find_slurm
    tl_where=
    [ "$2" = - ] || tl_where=--clusters=$2
    sacct ${tl_where:+"$tl_where"} --noheader --parsable2 --format=JobID,State,ExitCode "--jobs=$1" </dev/null | awk -F '|' '
        NF != 3 { next }
        $1 ~ /[.]/ { sub(/^[^.]*[.]/, "", $1); if (++steps <= 200) print "slurm step=" $1 " " $2 " " $3; next }
        { code = $3 }
        END { if (code != "") print "slurm exit=" code }' | tr -cd '[:print:]\n' >./asked
    [ -s ./asked ] || scontrol ${tl_where:+"$tl_where"} show job "$1" </dev/null |
        sed -n 's/.*ExitCode=\([0-9]*:[0-9]*\).*/slurm exit=\1/p' | head -n 1 >./asked
    cat ./asked
}

# What the job wrote itself: its end, and where its ranks were.
read_own() {
    sed -n -e 's/^verdict=/end &/p' -e 's/^reason=/end &/p' -e 's/^code=/end &/p' -e 's/^rank=/rank /p' "$1/end"
    (cd "$1/exit" && grep -H '' [0-9]* /dev/null) | awk -F '[: ]' 'NF >= 4 && $4 != "" { print "on " $1 " " $4 }'
}

tl_attempt=$1/attempts/$2 tl_own=$1/attempts/$2 tl_id=$4 tl_cluster=$5 tl_seconds=$6 tl_bytes=$7
[ "$3" = - ] || tl_own=$tl_own/task-$3
shift 7
if [ ! -d "$tl_attempt" ]; then
    mkdir ./none
    tl_attempt=./none
fi
{
    cat ./facts
    [ -f "$tl_own/end" ] && [ ! -h "$tl_own/end" ] && read_own "$tl_own" | tr -cd '[:print:]\n' | head -n 20000
    [ "$tl_id" = - ] || (ask_slurm "$tl_id" "$tl_cluster")
} 2>/dev/null >./all
sed 's/^/fact	/' ./all
/bin/sh ./search.sh ./rules ./all "$tl_seconds" "$tl_bytes" "$tl_attempt" "$@"
