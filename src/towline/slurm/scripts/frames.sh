#!/bin/sh
# Answers in frames: `@…` heads, `>` lines of stdout, `!` lines of stderr. No content can pass for a head.

# ask NAME CLUSTER IDS COMMAND…: runs a query and prints it with its exit code.
ask() {
    inquire "$@"
    answer
    return "$tl_code"
}

# inquire NAME CLUSTER IDS COMMAND…: runs a query. Times come as seconds since 1970, and the numbers of an array's tasks
# are not cut at 64 characters; the variables are not exported to everything, for sbatch would pass them on into the job.
inquire() {
    tl_head="$1 $2 $3"
    shift 3
    SLURM_TIME_FORMAT=%s SLURM_BITSTR_LEN=0 "$@" >./ask.out 2>./ask.err </dev/null
    tl_code=$?
}

# answer: prints the last query once more under the current head.
answer() {
    printf '@query %s %s\n' "$tl_code" "$tl_head"
    sed 's/^/>/' ./ask.out
    sed 's/^/!/' ./ask.err
}
