#!/bin/sh
# Finding a job again by its token.

# first_id: the lowest id of rows `id|state|…` on stdin; other lines are a site's chatter. A submission that was
# refused for its constraints can leave a record too: FAILED, and it never had a node.
first_id() {
    awk -F '|' '
        $1 !~ /^[0-9]+$/ || NF != 3 { next }
        $2 == "FAILED" && ($3 == "BadConstraints" || $3 == "None assigned") { next }
        { print $1 }' | sort -n | head -n 1
}

# look_up TOKEN SINCE: prints `<where> <id>`; returns 1 when there is no such job, 2 when that cannot be told.
# The queue comes first: accounting learns of a job late, the queue forgets it soon. Where a site keeps no
# accounting, the queue's word is the last one.
look_up() {
    if ! tl_rows=$(squeue --noheader --all --states=all --user="$(id -u)" --name="$1" --format='%A|%T|%r' \
        2>./look.err </dev/null)
    then
        cat ./look.err >&2
        return 2
    fi
    tl_id=$(printf '%s\n' "$tl_rows" | first_id)
    if [ -n "$tl_id" ]; then
        printf 'queue %s\n' "$tl_id"
        return 0
    fi
    if ! tl_rows=$(sacct --allocations --noheader --parsable2 --user="$(id -u)" --starttime="$2" --name="$1" \
        --format=JobIDRaw,State,NodeList 2>./look.err </dev/null)
    then
        grep -qi 'accounting storage is disabled' ./look.err && return 1
        cat ./look.err >&2
        return 2
    fi
    tl_id=$(printf '%s\n' "$tl_rows" | first_id)
    [ -n "$tl_id" ] || return 1
    printf 'accounting %s\n' "$tl_id"
}
