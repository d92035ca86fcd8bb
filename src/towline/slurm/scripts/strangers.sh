#!/bin/sh
# Slurm's ids come again; see slurm/strangers.py.

# own DIR CLUSTER ID…: those of the ids (of tasks like `12_3`) that the queue does not have for jobs which work in other
# directories than DIR. CLUSTER is `-` for the one that answers by itself.
own() {
    tl_works=${1##*/} tl_there=
    [ "$2" = - ] || tl_there=--clusters=$2
    shift 2
    tl_asked=$(printf '%s\n' "$@" | sed 's/_.*//' | paste -s -d , -)
    tl_rows=$(squeue ${tl_there:+"$tl_there"} --noheader --all --states=all "--jobs=$tl_asked" '--format=%F|%Z' 2>/dev/null </dev/null)
    for tl_id; do
        tl_found=$(printf '%s\n' "$tl_rows" | sed -n "s/^${tl_id%%_*}|//p" | head -n 1)
        if [ -z "$tl_found" ] || [ "${tl_found##*/}" = "$tl_works" ]; then printf '%s\n' "$tl_id"; fi
    done
}

# is_stranger ID DIR [CLUSTER]: whether the queue has another job under this id than the one that works in DIR.
is_stranger() { [ -z "$(own "$2" "${3:--}" "$1")" ]; }
