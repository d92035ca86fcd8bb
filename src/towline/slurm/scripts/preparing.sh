#!/bin/sh
# What jobs that prepare something share. TOWLINE_JOB_DIR is <place>/imports/<name>, TOWLINE_ATTEMPT the attempt.

# shellcheck disable=SC2034  # scripts that read this use it
failed=1
duplicate=120
here=$TOWLINE_JOB_DIR/attempts/$TOWLINE_ATTEMPT
worker=''

# put NAME LINE…: a record that is whole or not there.
put() {
    put_name=$1
    shift
    { printf '%s\n' "$@" >"$here/.$put_name" && mv -f "$here/.$put_name" "$here/$put_name"; } 2>/dev/null
}

# The claim that attempt.sh looks for: a hard link to a finished file, once.
claim() {
    printf '%s\n' "$SLURM_JOB_ID" >"$here/.claim.$SLURM_JOB_ID"
    ln "$here/.claim.$SLURM_JOB_ID" "$here/claim" 2>/dev/null
    [ -e "$here/claim" ] || (set -C && cat "$here/.claim.$SLURM_JOB_ID" >"$here/claim") 2>/dev/null
    rm -f "$here/.claim.$SLURM_JOB_ID"
    read -r owner <"$here/claim"
    [ "$owner" = "$SLURM_JOB_ID" ] || exit "$duplicate"
}

# room PATH: KiB that are free there.
room() { df -Pk "$1" 2>/dev/null | awk 'NR > 1 { print $(NF - 2) }' | tail -n 1; }

# run COMMAND…: in the background, for a signal must reach this shell at once.
run() {
    "$@" </dev/null >>"$here/log" 2>&1 &
    worker=$!
    wait "$worker"
    code=$?
    worker=
    return "$code"
}
