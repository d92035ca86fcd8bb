#!/bin/sh
# Finding a job again by its token.

# job_ids: the ids in rows `id|state|…` on stdin, lowest first; other lines are a site's chatter. Tasks of an array
# (`12_3`) and parts of a heterogeneous job (`12+1`) are one job. A submission that was refused for its constraints can
# leave a record too: FAILED, and it never had a node.
job_ids() {
    awk -F '|' '
        { sub(/[_+].*/, "", $1) }
        $1 !~ /^[0-9]+$/ || NF != 3 { next }
        $2 == "FAILED" && ($3 == "BadConstraints" || $3 == "None assigned") { next }
        { print $1 }' | sort -n -u
}

# living: those of the rows on stdin whose job has not ended.
living() {
    awk -F '|' '
        BEGIN {
            split("COMPLETED CANCELLED FAILED TIMEOUT NODE_FAIL PREEMPTED BOOT_FAIL DEADLINE OUT_OF_MEMORY REVOKED", words, " ")
            for (i in words) over[words[i]] = 1
        }
        !($2 in over)'
}

# queue_rows TOKEN: rows `id|state|reason` of the user's jobs of that name, also of those that ended just now.
queue_rows() {
    squeue --noheader --all --states=all --user="$(id -u)" --name="$1" --format='%i|%T|%r' 2>./look.err </dev/null
}

# look_up TOKEN SINCE: prints `<where> <id>`; returns 1 when there is no such job, 2 when that cannot be told.
# The queue comes first: accounting learns of a job late, the queue forgets it soon. Where a site keeps no
# accounting, the queue's word is the last one.
look_up() {
    if ! tl_rows=$(queue_rows "$1"); then
        cat ./look.err >&2
        return 2
    fi
    tl_id=$(printf '%s\n' "$tl_rows" | job_ids | head -n 1)
    if [ -n "$tl_id" ]; then
        printf 'queue %s\n' "$tl_id"
        return 0
    fi
    if ! tl_rows=$(sacct --allocations --noheader --parsable2 --user="$(id -u)" --starttime="$2" --name="$1" \
        --format=JobID,State,NodeList 2>./look.err </dev/null)
    then
        grep -qi 'accounting storage is disabled' ./look.err && return 1
        cat ./look.err >&2
        return 2
    fi
    tl_id=$(printf '%s\n' "$tl_rows" | job_ids | head -n 1)
    [ -n "$tl_id" ] || return 1
    printf 'accounting %s\n' "$tl_id"
}
