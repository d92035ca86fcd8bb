#!/bin/sh
# Which jobs use an image of the cache.

# job_uses ROOT CACHE: lines `NAME JOB alive|over SECONDS` for each image that a job directory names. A job counts as
# alive while it is in the queue under its token, and while it is not in Slurm's hands yet. Fails when Slurm cannot tell.
job_uses() {
    squeue --noheader --all --user="$(id -u)" --format=%j >./queue.names 2>./look.err </dev/null || return 1
    find "$1/jobs" -mindepth 3 -maxdepth 6 -type f \( -name images -o -name step \) -exec grep -FH -- "$2/" {} + 2>/dev/null |
        jobs=$1/jobs/ cache=$2/ awk '
            BEGIN {
                while ((getline line <"./queue.names") > 0)
                    if (match(line, /-[0-9a-z]+-a[0-9]+$/)) {
                        id = substr(line, RSTART + 1)
                        sub(/-a[0-9]+$/, "", id)
                        alive[id] = 1
                    }
            }
            {
                id = substr($0, length(ENVIRON["jobs"]) + 1)
                sub(/\/.*/, "", id)
                rest = $0
                while ((at = index(rest, ENVIRON["cache"])) > 0) {
                    rest = substr(rest, at + length(ENVIRON["cache"]))
                    if (match(rest, /^[A-Za-z0-9_.+-]+\.sqsh/)) {
                        name = substr(rest, 1, RLENGTH - 5)
                        if (!((name, id) in seen)) print name, id, (id in alive ? "alive" : "over")
                        seen[name, id] = 1
                    }
                }
            }' | while read -r tl_used tl_by tl_is; do
        if [ "$tl_is" = over ] && ! ls "$1/jobs/$tl_by/attempts"/*/submit "$1/jobs/$tl_by/cancelled" >/dev/null 2>&1; then
            tl_is=alive # on its way to Slurm
        fi
        printf '%s %s %s %s\n' "$tl_used" "$tl_by" "$tl_is" "$(stat -c %Y "$1/jobs/$tl_by/job.json" 2>/dev/null)"
    done
}

# in_use NAME: the lines of ./uses that say so.
in_use() { grep -F -- "$1 " ./uses | grep " alive "; }
