#!/bin/sh
# Answers in frames: `@…` heads, `>` lines of stdout, `!` lines of stderr. No content can pass for a head.

# ask NAME CLUSTER IDS COMMAND…: runs a query and prints it with its exit code. Times come as seconds since 1970;
# the variable is not exported to everything, for sbatch would pass it on into the job.
ask() {
    tl_head="$1 $2 $3"
    shift 3
    SLURM_TIME_FORMAT=%s "$@" >./ask.out 2>./ask.err </dev/null
    tl_code=$?
    answer
    return "$tl_code"
}

# answer: prints the last query once more under the current head.
answer() {
    printf '@query %s %s\n' "$tl_code" "$tl_head"
    sed 's/^/>/' ./ask.out
    sed 's/^/!/' ./ask.err
}
