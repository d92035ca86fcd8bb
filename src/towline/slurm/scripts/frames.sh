#!/bin/sh
# Answers in frames: `@…` heads, `>` lines of stdout, `!` lines of stderr. No content can pass for a head.

tl_to=./ask

# ask NAME CLUSTER IDS COMMAND…: runs a query and prints it with its exit code.
ask() {
    inquire "$@"
    answer
    return "$tl_code"
}

# inquire NAME CLUSTER IDS COMMAND…: runs a query; its words go to $tl_to.out and $tl_to.err. Times come as seconds since 1970, and the numbers of an array's tasks
# are not cut at 64 characters; the variables are not exported to everything, for sbatch would pass them on into the job.
inquire() {
    tl_head="$1 $2 $3"
    shift 3
    SLURM_TIME_FORMAT=%s SLURM_BITSTR_LEN=0 "$@" >"$tl_to.out" 2>"$tl_to.err" </dev/null
    tl_code=$?
}

# answer: prints the last query once more under the current head.
answer() {
    printf '@query %s %s\n' "$tl_code" "$tl_head"
    [ ! -s "$tl_to.out" ] || sed 's/^/>/' "$tl_to.out"
    [ ! -s "$tl_to.err" ] || sed 's/^/!/' "$tl_to.err"
}
