#!/bin/sh
# The job that takes results away once a job has succeeded: TOWLINE_JOB_DIR is <job>/outputs/imports/all, TOWLINE_ATTEMPT the
# attempt. script/outputs has two lines for each, DESTINATION and PATH below the job's results; script/tasks the numbers of an
# array's tasks, one a line: of those that succeeded each goes to a place of its own. script/stager is the program,
# deliver_python in script/data the Python that runs it. Records: claim, stage, log, end; <job>/outputs/all/note in the end.
set -u
umask 077
# shellcheck source=src/towline/slurm/scripts/imports.sh
. ./imports.sh
# shellcheck source=src/towline/slurm/scripts/preparing.sh
. ./preparing.sh
# shellcheck source=src/towline/slurm/scripts/python.sh
. ./python.sh
# shellcheck source=src/towline/slurm/scripts/redeliver.sh
. ./redeliver.sh
# shellcheck source=src/towline/slurm/scripts/strangers.sh
. ./strangers.sh

place=${TOWLINE_JOB_DIR%/imports/*}
job=${place%/outputs}
deliver_python=''
# shellcheck source=/dev/null
. "$TOWLINE_JOB_DIR/script/data"
secrets=$TOWLINE_JOB_DIR/script/secrets-$TOWLINE_ATTEMPT
tasks=$TOWLINE_JOB_DIR/script/tasks

# fail STAGE CODE
fail() {
    [ ! -f "$here/log" ] || cat "$here/log" >&2 2>/dev/null # a signal may come while the log is where errors go
    rm -f "$secrets"
    put end "code=$2" "stage=$1" "host=$(uname -n)" "python=$deliver_python"
    case $1 in unfinished | not-done) [ -f "$tasks" ] || go_on ;; esac
    exit "$failed"
}

# go_on: a client may just have had the job go on, and have looked at this one before it had an end.
go_on() {
    last=$newest
    newest_import "$job"
    [ "$tl_n" -gt "$last" ] || return 0
    newest=$tl_n
    next=$(import_id "$job" "$newest")
    case $next in -) return 0 ;; esac # whoever submits it now finds the end of this one
    may_deliver_again "$job" "$newest" && deliver_after "$next" && exit 0
}

# shellcheck disable=SC2317  # called from a trap
stop() {
    trap '' TERM INT
    [ -z "$worker" ] || kill "$worker" 2>/dev/null
    fail stopped 143
}

# read_verdict PART: sets verdict to how the job's newest attempt ended, or the newest of its task with PART `/task-<n>`;
# empty while it has not. No program is started: an array may have thousands.
read_verdict() {
    last=$newest verdict=''
    while [ "$last" -gt 1 ] && [ ! -d "$job/attempts/$last$1" ]; do last=$((last - 1)); done
    [ -f "$job/attempts/$last$1/end" ] || return 0
    while IFS='=' read -r key value; do
        [ "$key" != verdict ] || verdict=$value
    done <"$job/attempts/$last$1/end"
}

# sort_tasks: writes the numbers of the tasks that succeeded to done, and the others' to left; sets verdict to `done` when
# there is one, and empty when one has not ended.
sort_tasks() {
    : >"$here/done"
    : >"$here/left"
    all=none open=''
    while read -r task; do
        read_verdict "/task-$task"
        case $verdict in
        'done') all='done' && printf '%s\n' "$task" >>"$here/done" ;;
        *) printf '%s\n' "$task" >>"$here/left" ;;
        esac
        [ -n "$verdict" ] || open=yes
    done <"$tasks"
    verdict=$all
    [ -z "$open" ] || verdict=''
}

# Sets newest to the job's newest attempt, and verdict. A network file system may show another node's record a little late.
look() {
    for _ in 1 2 3 4 5 6 7 8 9 10; do
        newest_import "$job"
        newest=$tl_n
        if [ -f "$tasks" ]; then sort_tasks; else read_verdict ''; fi
        if [ -n "$verdict" ] || [ "$newest" -gt 1 ]; then return; fi
        sleep 1
    done
}

# The job goes on, maybe under another Slurm id: this one waits for that instead.
wait_for_next() {
    [ ! -f "$tasks" ] || newest=1 # an array keeps its id
    next=$(import_id "$job" "$newest")
    case $next in -) return 1 ;; esac
    [ -n "$(squeue --noheader "--jobs=$next" 2>/dev/null </dev/null)" ] && ! is_stranger "$next" "$job" || return 1
    rm -f "$here/claim"
    new=$(sbatch --parsable "--dependency=afterany:$next" "$TOWLINE_JOB_DIR/script/batch-$TOWLINE_ATTEMPT" 2>>"$here/log" </dev/null) || return 1
    put submit "$new"
    exit 0
}

# send: with the keys in its environment only.
send() {
    (
        # shellcheck source=/dev/null
        . "$TOWLINE_JOB_DIR/script/variables"
        # shellcheck source=/dev/null
        [ ! -f "$secrets" ] || . "$secrets"
        exec "$tl_python" "$TOWLINE_JOB_DIR/script/stager" send "$job/results" "$TOWLINE_JOB_DIR/script/outputs" "$@"
    )
}

# told_left: how many tasks stay behind, and the first of them.
told_left() { echo "$(wc -l <"$here/left") $(head -n 10 "$here/left" | tr '\n' ' ')"; }

keep() {
    mkdir -p "$place/all" && printf 'size=0\nmade=%s\n' "$(date +%s)" >"$place/all/.note" && mv -f "$place/all/.note" "$place/all/note"
}

claim
rm -f "$here/end" "$here/log" "$here/stage"
trap stop TERM INT
newest=0 verdict=''
look
if [ -z "$verdict" ]; then
    wait_for_next || [ -s "$here/done" ] || fail unfinished 1
    verdict='done' # tasks that were never started have no record
fi
[ "$verdict" = 'done' ] || fail not-done 1
find_python "$deliver_python" || fail no-python 127
put stage send
[ ! -f "$tasks" ] || set -- "$here/done"
run send "$@" || fail send "$code"
rm -f "$secrets"
keep || fail keep 1
[ ! -f "$tasks" ] || set -- "left=$(told_left)"
put end "code=0" "stage=done" "host=$(uname -n)" "$@"
