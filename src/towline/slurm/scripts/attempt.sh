#!/bin/sh
# One attempt becomes exactly one Slurm job, however often and from wherever this is called.
#
# Whoever makes the directory attempts/<n> holds claim 1 and may submit. Claim k+1 is the directory submitter.<k+1>
# in it; it may be made when claim k was given back (refused.<k>), or is older than twice Slurm's message time-out,
# and a look-up found no job. Claims only grow and nothing of them is removed: of two who want to break the same
# claim only one can make the next directory, and the one who lost its claim sees that before it calls sbatch.

# Starting programs is most of what a submission costs here, so the shell does what it can by itself.
tl_host=
{ read -r tl_host </proc/sys/kernel/hostname; } 2>/dev/null || tl_host=$(uname -n)

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
    tl_begin=$(date +%s)
    tl_since=$tl_begin
    [ "$5" -lt "$tl_since" ] && tl_since=$5 # sacct takes no time in the future, and the intent has another clock
    tl_since=uts$((tl_since - 86400))
    tl_attempt=$tl_dir/attempts/$tl_number
    tl_mark=$tl_host.$$
}

# find_attempt DIR NUMBER TOKEN MESSAGE_TIMEOUT INTENT OWNER WITHDRAW: what became of a submission; nothing is
# submitted. When there is no job and WITHDRAW is `yes`, none will come of it any more either.
find_attempt() {
    mean "$@"
    [ "$7" != yes ] || [ -d "$tl_dir" ] || bury
    [ -d "$tl_dir" ] || exit 50
    latest_claim
    single_out
    find_job && return 0
    [ ! -e "$tl_attempt/withdrawn" ] || withdrawn
    if [ -d "$tl_attempt" ] && [ ! -e "$tl_attempt/refused.$tl_claim" ] && is_young; then
        echo 'the submission is going on' >&2
        exit 47
    fi
    [ "$7" != yes ] || withdraw
    exit 50
}

# bury: what the client sent may still be on its way; it finds a directory that says no.
bury() {
    tl_new=${tl_dir%/*}/.${tl_dir##*/}.$tl_mark
    trap 'rm -rf "$tl_new"' EXIT
    { mkdir -p "$tl_new/attempts/$tl_number" && printf '' >"$tl_new/cancelled" &&
        printf '' >"$tl_new/attempts/$tl_number/withdrawn"; } 2>./make.err || write_failed ./make.err
    if mv -T "$tl_new" "$tl_dir" 2>./make.err; then
        withdrawn
    fi
    [ -d "$tl_dir" ] || write_failed ./make.err
    rm -rf "$tl_new"
    trap - EXIT
}

# withdraw: takes the next claim and never uses it, so that a straggler cannot submit, however late it comes.
withdraw() {
    if [ ! -d "$tl_attempt" ]; then
        mkdir "$tl_attempt" 2>./make.err || lost_the_claim "$tl_attempt"
    else
        tl_claim=$((tl_claim + 1))
        mkdir "$tl_attempt/submitter.$tl_claim" 2>./make.err || lost_the_claim "$tl_attempt/submitter.$tl_claim"
    fi
    rm -f "$tl_dir/secrets"
    { printf '' >"$tl_dir/cancelled" && printf '' >"$tl_attempt/withdrawn"; } 2>./make.err || write_failed ./make.err
    withdrawn
}

withdrawn() {
    echo 'there is no job, and the submission is withdrawn' >&2
    exit 51
}

# single_out: of two claims there may have come two jobs. One keeps the attempt, the others leave the queue. The
# claim names the keeper first, as the job itself would: from then on no other can start, and none is ended that did.
single_out() {
    [ -e "$tl_attempt/submitter.2" ] || return 0
    tl_rows=$(queue_rows "$tl_token") || return 0
    tl_ids=$(printf '%s\n' "$tl_rows" | living | job_ids)
    tl_id=$(claimed || answered || printf '%s\n' "$tl_rows" | job_ids | head -n 1)
    tl_keeper=${tl_id%%;*}
    if [ -z "$(others)" ]; then
        is_young || printf '' >"$tl_attempt/single"
        return 0
    fi
    # Tasks of an array have claims of their own.
    if ! printf '%s\n' "$tl_rows" | grep -q '^[0-9]*_'; then
        claim_for "$tl_keeper"
        tl_keeper=$(claimed) || return 0
    fi
    # shellcheck disable=SC2046 # ids are digits, one word each
    in_time scancel $(others) </dev/null >&2
}

# others: the living jobs beside the keeper.
others() {
    printf '%s\n' "$tl_ids" | grep -v -x -e "$tl_keeper" -e ''
}

# claim_for ID: writes the claim that the job would write when it starts.
claim_for() {
    tl_part=$tl_attempt/.claim.$tl_mark
    { printf '%s\n' "$1" >"$tl_part" && [ "$(cat "$tl_part")" = "$1" ] && ln "$tl_part" "$tl_attempt/claim"; } 2>/dev/null
    rm -f "$tl_part"
}

latest_claim() {
    tl_claim=1
    while [ -e "$tl_attempt/submitter.$((tl_claim + 1))" ]; do
        tl_claim=$((tl_claim + 1))
    done
}

# recorded: an earlier call has the answer; prints it. The job that has the attempt counts, should there be two.
recorded() {
    [ -f "$tl_attempt/submit" ] || return 1
    tl_id=$(answered) || return 1
    tl_owner_id=$(claimed)
    if [ -n "$tl_owner_id" ] && [ "$tl_owner_id" != "${tl_id%%;*}" ] && [ -e "$tl_attempt/submitter.2" ]; then
        tell claimed "$tl_owner_id"
    else
        tell recorded "$tl_id"
    fi
}

# answered: the id in sbatch's answer, if that was written down.
answered() {
    [ -f "$tl_attempt/submit" ] && id_of "$(cat "$tl_attempt/submit")"
}

# claimed: the id of the job that has the attempt, if one has.
claimed() {
    [ -f "$tl_attempt/claim" ] && id_of "$(cat "$tl_attempt/claim")"
}

# id_of TEXT: prints the one id in it; fails if there is none.
id_of() {
    case $1 in
    '' | *[!0-9]*) tl_word=$(printf '%s\n' "$1" | sbatch_id) ;;
    *) tl_word=$1 ;; # as sbatch nearly always says it
    esac
    [ -n "$tl_word" ] && printf '%s\n' "$tl_word"
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
    mkdir "$tl_attempt/submitter.$tl_claim" 2>./make.err || lost_the_claim "$tl_attempt/submitter.$tl_claim"
    return 1
}

# lost_the_claim DIR: somebody else made it, or nobody can.
lost_the_claim() {
    [ -d "$1" ] || write_failed ./make.err
    echo 'another submission of this attempt began just now' >&2
    exit 47
}

# find_job: the job wrote its own id when it started, or Slurm knows its token; returns 1 when there is none.
find_job() {
    recorded && return 0
    if tl_id=$(claimed); then
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
    tl_answer=$({ cd "$tl_dir" && as_user in_time "$@"; } 2>"$tl_here/sbatch.err" </dev/null)
    tl_code=$?
    [ ! -s ./sbatch.err ] || cat ./sbatch.err >&2
    tl_id=$(id_of "$tl_answer")
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
    { printf 'owner=%s\nhost=%s\ntime=%s\n' "$tl_owner" "$tl_host" "$tl_begin" >"$tl_name"; } 2>./make.err
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
        [ ! -f "$tl_dir/script/layout" ] || link_below_root "$tl_link"
    else
        cat ./make.err >&2
    fi
    tell "$1" "$2"
}

# link_below_root LINK: the logs as the layout wants them, where others look for them.
link_below_root() {
    tl_base=${tl_dir%/jobs/*}
    [ -d "$tl_base/slurm-logs" ] || mkdir "$tl_base/slurm-logs"
    [ -h "$tl_base/slurm-logs/${1##*/}" ] || ln -s "../${1#"$tl_base"/}" "$tl_base/slurm-logs/${1##*/}"
} 2>/dev/null

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
    printf '%s\n' "$1" >"$tl_part" && read -r tl_back <"$tl_part" && [ "$tl_back" = "$1" ] && mv -f "$tl_part" "$tl_attempt/submit"
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

# write_failed FILE: passes on the error and leaves with the exit code that it deserves, and with what is full.
write_failed() {
    cat "$1" >&2
    if grep -qi -e 'no space left' -e 'quota exceeded' "$1"; then
        space "${tl_dir:-${tl_import:-$tl_root}}"
        exit 44
    fi
    exit 45
}
