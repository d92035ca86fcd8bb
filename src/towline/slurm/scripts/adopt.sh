#!/bin/sh
# adopt.sh ROOT JOB: the user's jobs that Slurm has had, or one of them, from their directories. What is in them was written by jobs, and is
# not trusted; a directory of somebody else's, or one that others can write to, is passed over.
# shellcheck source=src/towline/slurm/scripts/common.sh
. ./common.sh

# is_own DIR: a directory of the user's own that nobody else can write to.
is_own() {
    [ ! -h "$1" ] || return 1
    tl_facts=$(stat -c '%A %u' "$1" 2>/dev/null)
    case $tl_facts in
    d????w* | d???????w*) return 1 ;;
    d*" $tl_uid") return 0 ;;
    *) return 1 ;;
    esac
}

# tell DIR: one job; a submission that was cut off before Slurm had the job leaves a directory, too.
tell() {
    [ -f "$1/job.json" ] && [ ! -h "$1/job.json" ] || return 0
    tl_answer=
    for tl_file in "$1/attempts/1/claim" "$1/attempts/1/submit"; do
        if [ -f "$tl_file" ] && [ ! -h "$tl_file" ]; then tl_answer=$(head -c 100 "$tl_file" | tr -cd 'A-Za-z0-9_.;-'); fi
    done
    [ -n "$tl_answer" ] || return 0
    printf '@job %s %s %s\n' "${1##*/}" "$(stat -c %Y "$1/job.json")" "$tl_answer"
    head -c 33554432 "$1/job.json" | sed 's/^/>/'
    echo
}

tl_uid=$(id -u)
if ! is_own "$1/jobs"; then
    echo '@strange jobs'
    echo @end
    exit 0
fi
for tl_dir in "$1/jobs/"${2:-*}; do
    [ -d "$tl_dir" ] || continue
    if is_own "$tl_dir"; then
        tell "$tl_dir"
    else
        printf '@strange %s\n' "${tl_dir##*/}"
    fi
done
echo @end
