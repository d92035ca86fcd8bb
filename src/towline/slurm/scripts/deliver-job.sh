#!/bin/sh
# The job that takes results away once a job has succeeded: TOWLINE_JOB_DIR is <job>/outputs/imports/all, TOWLINE_ATTEMPT the
# attempt. Lines of script/outputs are `DESTINATION PATH`, with paths below the job's results. script/stager is the program,
# deliver_python in script/data the Python that runs it. Records: claim, stage, log, end; <job>/outputs/all/note in the end.
set -u
umask 077
# shellcheck source=src/towline/slurm/scripts/imports.sh
. ./imports.sh
# shellcheck source=src/towline/slurm/scripts/preparing.sh
. ./preparing.sh
# shellcheck source=src/towline/slurm/scripts/python.sh
. ./python.sh

place=${TOWLINE_JOB_DIR%/imports/*}
job=${place%/outputs}
deliver_python=''
# shellcheck source=/dev/null
. "$TOWLINE_JOB_DIR/script/data"
secrets=$TOWLINE_JOB_DIR/script/secrets-$TOWLINE_ATTEMPT

# fail STAGE CODE
fail() {
    [ ! -f "$here/log" ] || cat "$here/log" >&2
    rm -f "$secrets"
    put end "code=$2" "stage=$1" "host=$(uname -n)"
    exit "$failed"
}

# shellcheck disable=SC2317  # called from a trap
stop() {
    trap '' TERM INT
    [ -z "$worker" ] || kill "$worker" 2>/dev/null
    fail stopped 143
}

# Sets newest to the job's newest attempt, and verdict to how it ended, empty while it has not. A network file system may
# show another node's record a little late.
read_verdict() {
    for _ in 1 2 3 4 5 6 7 8 9 10; do
        newest_import "$job"
        newest=$tl_n
        verdict=$(sed -n 's/^verdict=//p' "$job/attempts/$newest/end" 2>/dev/null)
        if [ -n "$verdict" ] || [ "$newest" -gt 1 ]; then return; fi
        sleep 1
    done
}

# The job goes on under another Slurm id: this one waits for that instead.
wait_for_next() {
    next=$(import_id "$job" "$newest")
    case $next in -) return 1 ;; esac
    if squeue --noheader "--jobs=$next" >/dev/null 2>&1 </dev/null && [ -n "$(squeue --noheader "--jobs=$next" 2>/dev/null </dev/null)" ]; then
        rm -f "$here/claim"
        sbatch --parsable "--dependency=afterany:$next" "$TOWLINE_JOB_DIR/script/batch-$TOWLINE_ATTEMPT" >>"$here/log" 2>&1 </dev/null && exit 0
    fi
    return 1
}

# send DESTINATION PATH: with the keys in its environment only.
send() {
    (
        # shellcheck source=/dev/null
        . "$TOWLINE_JOB_DIR/script/variables"
        # shellcheck source=/dev/null
        [ ! -f "$secrets" ] || . "$secrets"
        exec "$tl_python" "$TOWLINE_JOB_DIR/script/stager" send "$job/results/$2" "$1"
    )
}

keep() {
    mkdir -p "$place/all" && printf 'size=0\nmade=%s\n' "$(date +%s)" >"$place/all/.note" && mv -f "$place/all/.note" "$place/all/note"
}

claim
rm -f "$here/end" "$here/log" "$here/stage"
trap stop TERM INT
newest=0 verdict=''
read_verdict
if [ -z "$verdict" ]; then wait_for_next || fail unfinished 1; fi
[ "$verdict" = 'done' ] || fail not-done 1
find_python "$deliver_python" || fail no-python 127
put stage send
while read -r destination path; do
    run send "$destination" "$path" || fail send "$code"
done <"$TOWLINE_JOB_DIR/script/outputs"
rm -f "$secrets"
keep || fail keep 1
put end "code=0" "stage=done" "host=$(uname -n)"
