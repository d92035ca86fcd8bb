#!/bin/sh
# Which jobs use an image of the cache. A job of one's own names it in its directory; where a group shares the cache, jobs
# of others have left `.use.<image>.<uid>` there, with the names of their Slurm jobs without the number of the attempt.

# job_uses ROOT CACHE: lines `NAME JOB alive|over SECONDS` for each image that a job directory names. A job counts as
# alive while it is in the queue under its token, and while it is not in Slurm's hands yet. Fails when Slurm cannot tell.
job_uses() {
    own_use "$@" && others_use "$2"
}

own_use() {
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
        [ "$tl_is" = alive ] || ! is_on_its_way "$1/jobs/$tl_by" || tl_is=alive
        printf '%s %s %s %s\n' "$tl_used" "$tl_by" "$tl_is" "$(stat -c %Y "$1/jobs/$tl_by/job.json" 2>/dev/null)"
    done
}

# is_on_its_way JOB_DIR: Slurm has never had the job, and its client may still be at it; after a day that is none any more.
is_on_its_way() {
    for tl_sign in "$1/attempts"/*/submit "$1/attempts"/*/claim "$1/cancelled"; do
        [ ! -e "$tl_sign" ] || return 1
    done
    [ -z "$(find "$1/job.json" -mmin +1440 2>/dev/null)" ]
}

# others_use CACHE: the same for jobs of others, who stand in place of the job. Where Slurm hides their jobs, what they used
# in the last 30 days counts as used.
others_use() {
    for tl_mark in "$1"/.use.*; do
        [ -f "$tl_mark" ] || continue
        tl_by=$(stat -c %u "$tl_mark")
        [ "$tl_by" != "$(id -u)" ] || continue
        tl_used=${tl_mark##*/.use.} tl_is=over
        [ -f ./queue.all ] || list_all || return 1
        if sed "s/^/$tl_by /" "$tl_mark" | grep -Fxq -f - ./queue.all; then
            tl_is=alive
        elif [ -f ./hidden ] && [ -n "$(find "$tl_mark" -mtime -30)" ]; then
            tl_is=alive
        fi
        printf '%s %s %s %s\n' "${tl_used%.*}" "$(stat -c %U "$tl_mark")" "$tl_is" "$(stat -c %Y "$tl_mark")"
    done
}

# list_all: everybody's jobs as `UID NAME`, without the number of the attempt, and whether the site hides some.
list_all() {
    squeue --noheader --all --format='%U %j' 2>./look.err </dev/null | sed 's/-a[0-9]*$//' >./queue.all || return 1
    ! scontrol show config 2>/dev/null </dev/null | grep -q '^PrivateData.*jobs' || printf '' >./hidden
}

# mark_use IMAGE TOKEN: tells others of a job that uses an image of a shared cache.
mark_use() {
    tl_image=${1##*/}
    tl_mark=${1%/*}/.use.${tl_image%.sqsh}.$(id -u)
    { printf '%s\n' "$2" | sed 's/-a[0-9]*$//' >>"$tl_mark" && chmod 644 "$tl_mark"; } 2>/dev/null
}

# in_use NAME: the lines of ./uses that say so.
in_use() { grep -F -- "$1 " ./uses | grep " alive "; }
