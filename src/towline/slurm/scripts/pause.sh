#!/bin/sh
# pause.sh DIR WISH WAITS RESUMES ID: WISH `pause` or `resume`. A job that WAITS (`yes`) is held; one that runs is suspended
# where the site lets users do that, else one that RESUMES from checkpoints is told to end, put back into the queue and held.
# Exit codes: 0; 1 Slurm refused, maybe because the job waits by now; 46 the job is cancelled; 62 Slurm has given the id to another job; 60 it runs, and
# can be neither suspended nor put back.
# shellcheck source=src/towline/slurm/scripts/common.sh
. ./common.sh
# shellcheck source=src/towline/slurm/scripts/strangers.sh
. ./strangers.sh

scontrol_says() {
    scontrol "$@" </dev/null >&2
}

pause() {
    if [ "$2" = yes ]; then
        scontrol_says hold "$4"
        return
    fi
    scontrol_says suspend "$4" && return
    [ "$3" = yes ] || exit 60
    # The supervisor finds the mark when it is told to end; the pause then costs none of the new starts. It takes the mark
    # away when it starts, not before: a job that is let go on at once may still be ending.
    tl_marked=
    [ -e "$1/paused" ] || tl_marked=yes
    printf '' >"$1/paused"
    scontrol_says requeuehold "$4" && return
    # It runs on, and what ends it is no pause; or another client was faster, whose mark it is.
    [ -z "$tl_marked" ] || rm -f "$1/paused"
    return 1
}

resume() {
    if [ "$2" = yes ]; then scontrol_says release "$4"; else scontrol_says resume "$4"; fi
}

# refuse_if_cancelled ID: Slurm puts a job back into the queue, too, that was just told to end.
refuse_if_cancelled() {
    [ -e "$tl_dir/cancelled" ] || return 0
    echo 'the job is cancelled' >&2
    [ -z "$1" ] || scancel "$1" </dev/null >&2
    exit 46
}

find_slurm
tl_dir=$1 tl_wish=$2
shift 2
! is_stranger "$3" "$tl_dir" || exit 62
refuse_if_cancelled ''
case $tl_wish in
pause) pause "$tl_dir" "$@" ;;
*) resume "$tl_dir" "$@" ;;
esac
tl_code=$?
refuse_if_cancelled "$3"
(exit "$tl_code")
