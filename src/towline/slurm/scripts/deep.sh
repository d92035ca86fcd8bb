#!/bin/sh
# deep.sh DIRECTORY SECONDS NAME IMAGE STYLE OPTIONS…: runs ./job for a minute and shows what it found.
# DIRECTORY is made on the shared file system and removed at the end, and so is the job, whatever happens.
# STYLE is `none`, or sbatch's option for one GPU. OPTIONS are sbatch's for any job.
# shellcheck source=src/towline/slurm/scripts/common.sh
. ./common.sh
# shellcheck source=src/towline/slurm/scripts/frames.sh
. ./frames.sh

tl_directory=$1 tl_seconds=$2 tl_name=$3 tl_image=$4 tl_style=$5
shift 5
[ "$tl_style" = none ] || set -- "$@" "$tl_style"

tl_id=
clean() {
    trap '' TERM HUP INT
    [ -z "$tl_id" ] || scancel "$tl_id" >/dev/null 2>&1 </dev/null
    rm -rf "$tl_directory"
}
trap 'clean; exit' TERM HUP INT

find_slurm
if ! mkdir -p "$tl_directory" 2>./place.err || ! cp ./job "$tl_directory/job" 2>./place.err; then
    printf '@fact no-place\n'
    sed 's/^/!/' ./place.err
    echo @end
    exit 0
fi
printf 'mark\n' >"$tl_directory/mark"
printf '%s\n' "$@" >"$tl_directory/options"
ask submit - - sbatch --parsable "--job-name=$tl_name" --time=2 --nodes=1 --ntasks=1 --requeue --export=NONE --open-mode=append --chdir=/ \
    "--output=$tl_directory/out" "--error=$tl_directory/out" "$@" "$tl_directory/job" "$tl_directory" "$tl_image"
tl_id=$(sed -n 's/^\([0-9]\{1,\}\)\(;.*\)\{0,1\}$/\1/p' ./ask.out | tail -n 1)

# The job's own mark ends the wait; one that left the queue without it is over, too.
tl_waited=0
while [ -n "$tl_id" ] && [ ! -e "$tl_directory/end" ] && [ "$tl_waited" -lt "$tl_seconds" ]; do
    sleep 1 &
    wait $!
    tl_waited=$((tl_waited + 1))
    [ $((tl_waited % 5)) -eq 0 ] || continue
    ask state - - squeue --noheader --states=all "--jobs=$tl_id" '--format=%T|%r'
    grep -q '^\(PENDING\|RUNNING\|CONFIGURING\|COMPLETING\|REQUEUED\)' ./ask.out || break
done
if [ -n "$tl_id" ]; then
    # What was written on a node may be seen here a moment later.
    ls "$tl_directory" >/dev/null
    printf '@fact deep\n>waited %s\n' "$tl_waited"
    [ -e "$tl_directory/end" ] && echo '>end'
    if [ -s "$tl_directory/out" ]; then
        printf '@fact output\n'
        tail -n 20 "$tl_directory/out" | sed 's/^/>/'
    fi
    if [ -f "$tl_directory/answer" ]; then cat "$tl_directory/answer"; fi
fi
clean
echo @end
