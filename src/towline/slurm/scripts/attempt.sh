#!/bin/sh
# One attempt becomes exactly one Slurm job, however often and from wherever this is called.
#
# Whoever makes the directory attempts/<n> holds claim 1 and may submit. Claim k+1 is the directory submitter.<k+1>
# in it; it may be made when claim k was given back (refused.<k>), or is older than twice Slurm's message time-out,
# and a look-up found no job. Claims only grow and nothing of them is removed: of two who want to break the same
# claim only one can make the next directory, and the one who lost its claim sees that before it calls sbatch.

# submit_attempt DIR NUMBER TOKEN MESSAGE_TIMEOUT INTENT OWNER SBATCH…
submit_attempt() {
    mean "$@"
    shift 6
    trap '' HUP PIPE # a lost connection must not stop a submission half-way
    recorded && return 0
    refuse_if_cancelled
    if mkdir "$tl_attempt" 2>./make.err; then
        tl_claim=1
    else
        [ -d "$tl_attempt" ] || write_failed ./make.err
        take_over && return 0
    fi
    send "$@"
}

# mean DIR NUMBER TOKEN MESSAGE_TIMEOUT INTENT OWNER: which attempt the functions below are about.
mean() {
    tl_dir=$1 tl_number=$2 tl_token=$3 tl_patience=$(($4 * 2)) tl_owner=$6
    tl_since=$(date +%s)
    [ "$5" -lt "$tl_since" ] && tl_since=$5 # sacct takes no time in the future, and the intent has another clock
    tl_since=uts$((tl_since - 86400))
    tl_attempt=$tl_dir/attempts/$tl_number
    tl_mark=$(uname -n).$$
}

# find_attempt DIR NUMBER TOKEN MESSAGE_TIMEOUT INTENT OWNER: what became of a submission; nothing is submitted.
find_attempt() {
    mean "$@"
    [ -d "$tl_dir" ] || exit 50
    latest_claim
    find_job && return 0
    if [ -d "$tl_attempt" ] && [ ! -e "$tl_attempt/refused.$tl_claim" ] && is_young; then
        echo 'the submission is going on' >&2
        exit 47
    fi
    exit 50
}

latest_claim() {
    tl_claim=1
    while [ -e "$tl_attempt/submitter.$((tl_claim + 1))" ]; do
        tl_claim=$((tl_claim + 1))
    done
}

# recorded: an earlier call has the answer; prints it.
recorded() {
    [ -f "$tl_attempt/submit" ] || return 1
    tl_id=$(sbatch_id <"$tl_attempt/submit")
    [ -n "$tl_id" ] && tell recorded "$tl_id"
}

refuse_if_cancelled() {
    if [ -e "$tl_dir/cancelled" ]; then
        echo 'the job is cancelled' >&2
        exit 46
    fi
}

# take_over: somebody else made the claim. Finds the job, or waits, or wins the next claim (and returns 1).
take_over() {
    latest_claim
    find_job && return 0
    if [ ! -e "$tl_attempt/refused.$tl_claim" ] && is_young; then
        echo 'another submission of this attempt is going on' >&2
        exit 47
    fi
    tl_claim=$((tl_claim + 1))
    if ! mkdir "$tl_attempt/submitter.$tl_claim" 2>./make.err; then
        [ -d "$tl_attempt/submitter.$tl_claim" ] || write_failed ./make.err
        echo 'another submission of this attempt began just now' >&2
        exit 47
    fi
    return 1
}

# find_job: the job wrote its own id when it started, or Slurm knows its token; returns 1 when there is none.
find_job() {
    recorded && return 0
    tl_id=
    [ -f "$tl_attempt/claim" ] && tl_id=$(sbatch_id <"$tl_attempt/claim")
    if [ -n "$tl_id" ]; then
        finish claimed "$tl_id"
        return 0
    fi
    tl_found=$(look_up "$tl_token" "$tl_since")
    case $? in
    0) finish "${tl_found% *}" "${tl_found#* }" ;;
    1) return 1 ;;
    *)
        echo 'whether the job exists cannot be told now' >&2
        exit 49
        ;;
    esac
}

# is_young: ages are told by the file system's own clock, from a file that is written now.
is_young() {
    tl_holder=$tl_attempt/submitter
    if [ "$tl_claim" -gt 1 ]; then
        tl_holder=$tl_attempt/submitter.$tl_claim
    elif [ ! -e "$tl_holder" ]; then
        tl_holder=$tl_attempt # its maker died before it could sign
    fi
    tl_probe=$tl_dir/.probe.$tl_mark
    printf '' >"$tl_probe" || return 0
    tl_now=$(stat -c %Y "$tl_probe")
    tl_then=$(stat -c %Y "$tl_holder")
    rm -f "$tl_probe"
    [ -z "$tl_now" ] || [ -z "$tl_then" ] || [ $((tl_now - tl_then)) -le "$tl_patience" ]
}

# send SBATCH…: this process holds the claim.
send() {
    if ! sign; then
        give_back
        write_failed ./make.err
    fi
    if [ -e "$tl_dir/cancelled" ]; then
        give_back
        refuse_if_cancelled
    fi
    if [ -e "$tl_attempt/submitter.$((tl_claim + 1))" ]; then
        echo 'this submission was taken over by another' >&2
        exit 47
    fi
    tl_here=$PWD
    # From the job directory: SLURM_SUBMIT_DIR names it, and this place is gone when the job runs.
    tl_answer=$({ cd "$tl_dir" && in_time "$@"; } 2>"$tl_here/sbatch.err" </dev/null)
    tl_code=$?
    cat ./sbatch.err >&2
    tl_id=$(printf '%s\n' "$tl_answer" | sbatch_id)
    if [ "$tl_code" -eq 0 ] && [ -n "$tl_id" ]; then
        finish submitted "$tl_id"
        stop_if_cancelled "$tl_id"
        return 0
    fi
    printf '%s\n' "$tl_answer" >&2
    if may_exist; then
        find_job && return 0
        echo 'sbatch did not say whether it made a job' >&2
        exit 49
    fi
    give_back
    exit 48
}

# sign: who holds the claim, for people and for its age.
sign() {
    tl_name=$tl_attempt/submitter
    [ "$tl_claim" -gt 1 ] && tl_name=$tl_attempt/submitter.$tl_claim/who
    { printf 'owner=%s\nhost=%s\ntime=%s\n' "$tl_owner" "$(uname -n)" "$(date +%s)" >"$tl_name"; } 2>./make.err
}

give_back() {
    printf '' >"$tl_attempt/refused.$tl_claim"
}

# in_time COMMAND…: sbatch must have ended before others may take the claim for abandoned.
in_time() {
    if command -v timeout >/dev/null 2>&1; then
        timeout "$((tl_patience > 1 ? tl_patience - 1 : 1))" "$@"
    else
        "$@"
    fi
}

# may_exist: sbatch failed in a way that leaves open whether the controller has the job.
may_exist() {
    [ "$tl_code" -eq 0 ] || [ -n "$tl_id" ] || [ "$tl_code" -eq 124 ] || # timeout(1) ended it
        { [ "$tl_code" -ge 128 ] && [ "$tl_code" -ne 255 ]; } || # a signal did; 255 is sbatch's own for a bad option
        grep -qi -e 'timed out' -e 'send/recv' -e 'zero bytes' -e 'connection reset' -e 'broken pipe' -e 'transport endpoint' \
        -e 'receive failure' -e 'send failure' -e 'shutdown failure' -e 'unexpected message' -e 'insane message' \
        ./sbatch.err
}

# finish HOW ID: writes the answer down, whole, and links the logs by Slurm's name and id.
finish() {
    if write_answer "$2" 2>./make.err; then
        [ -d "$tl_dir/slurm-logs" ] || mkdir "$tl_dir/slurm-logs"
        tl_link=$tl_dir/slurm-logs/$tl_token-${2%%;*}
        [ -h "$tl_link" ] || ln -s "../attempts/$tl_number" "$tl_link"
    else
        cat ./make.err >&2
    fi
    tell "$1" "$2"
}

# stop_if_cancelled ID: the job was cancelled while sbatch ran; whoever did that may not have seen it in the queue.
stop_if_cancelled() {
    [ -e "$tl_dir/cancelled" ] || return 0
    case $1 in
    *\;*) in_time scancel "--clusters=${1#*;}" "${1%;*}" </dev/null >&2 ;;
    *) in_time scancel "$1" </dev/null >&2 ;;
    esac
    refuse_if_cancelled
}

# write_answer ID: the shell does not see errors that come at the end of writing, so the file is read again.
write_answer() {
    tl_part=$tl_attempt/.submit.$tl_mark
    printf '%s\n' "$1" >"$tl_part" && [ "$(cat "$tl_part")" = "$1" ] && mv -f "$tl_part" "$tl_attempt/submit"
}

tell() {
    printf 'came=%s\nslurm=%s\n' "$1" "$2"
}

# sbatch_id: the one id on stdin as `id` or `id;cluster`; nothing if there is none or several.
sbatch_id() {
    tr -d '\r' | sed -n \
        -e 's/^[[:space:]]*\([0-9][0-9]*\)[[:space:]]*$/\1/p' \
        -e 's/^[[:space:]]*\([0-9][0-9]*;[^[:space:]]\{1,\}\)[[:space:]]*$/\1/p' \
        -e 's/^[[:space:]]*Submitted batch job \([0-9][0-9]*\)[[:space:]]*$/\1/p' \
        -e 's/^[[:space:]]*Submitted batch job \([0-9][0-9]*\) on cluster \([^[:space:]]\{1,\}\)[[:space:]]*$/\1;\2/p' |
        sort -u | awk '{ id = $0 } END { if (NR == 1) print id }'
}

# write_failed FILE: passes on the error and leaves with the exit code that it deserves.
write_failed() {
    cat "$1" >&2
    grep -qi -e 'no space left' -e 'quota exceeded' "$1" && exit 44
    exit 45
}
