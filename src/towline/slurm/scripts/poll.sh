#!/bin/sh
# poll.sh ROOT SQUEUE_FORMAT SACCT_FIELDS: looks at any number of attempts.
# ./queries has a line `CLUSTER ID,ID,…` for each query (`-` for the cluster that answers by itself), ./jobs has a line
# `JOB ATTEMPT` for each attempt whose files are wanted.
# shellcheck source=src/towline/slurm/scripts/common.sh
. ./common.sh
# shellcheck source=src/towline/slurm/scripts/frames.sh
. ./frames.sh

# gone IDS: those that are not alive in squeue's answer, for accounting to tell about.
gone() {
    awk -F '|' -v wanted="$1" '
        BEGIN {
            split("COMPLETED CANCELLED FAILED TIMEOUT NODE_FAIL PREEMPTED BOOT_FAIL DEADLINE OUT_OF_MEMORY REVOKED", words, " ")
            for (i in words) over[words[i]] = 1
        }
        /^[0-9]/ && !($2 in over) { sub(/[_+].*/, "", $1); alive[$1] = 1 }
        END {
            count = split(wanted, ids, ",")
            for (i = 1; i <= count; i++) {
                base = ids[i]
                sub(/[_+].*/, "", base)
                if (!(base in alive)) { printf "%s%s", sep, ids[i]; sep = "," }
            }
        }' ./ask.out
}

# query CLUSTER IDS: the queue, then accounting for what is no longer alive there. A controller that is away takes
# nine seconds to fail, so a cluster that did not answer is not asked again in this poll.
query() {
    tl_where=
    [ "$1" = - ] || tl_where=--clusters=$1
    if [ "$1" = "$tl_away" ]; then
        tl_head="squeue $1 $2"
        answer
        return
    fi
    if ! ask squeue "$1" "$2" squeue ${tl_where:+"$tl_where"} --noheader --all --states=all "--format=$tl_format" "--jobs=$2" &&
        ! grep -qi 'invalid job id' ./ask.err
    then
        tl_away=$1
        return
    fi
    tl_gone=$(gone "$2")
    if [ -n "$tl_gone" ]; then
        ask sacct "$1" "$tl_gone" sacct ${tl_where:+"$tl_where"} --allocations --duplicates --noheader --parsable2 \
            "--format=$tl_fields" "--jobs=$tl_gone"
    fi
}

# look JOB ATTEMPT: heads for the job, and the list of files to show. Links and devices are a job's tricks.
look() {
    tl_dir=$tl_root/jobs/$1
    tl_newest=0
    tl_next=$2
    while [ -d "$tl_dir/attempts/$tl_next" ]; do
        tl_newest=$tl_next
        tl_next=$((tl_next + 1))
    done
    tl_present=no tl_cancelled=no tl_secrets=no tl_contested=no
    [ -d "$tl_dir" ] && tl_present=yes
    [ -e "$tl_dir/cancelled" ] && tl_cancelled=yes
    [ -e "$tl_dir/secrets" ] && tl_secrets=yes
    # Two claims may have made two jobs; see single_out in attempt.sh.
    [ -e "$tl_dir/attempts/$2/submitter.2" ] && [ ! -e "$tl_dir/attempts/$2/single" ] && tl_contested=yes
    printf '@job %s %s %s %s %s %s %s\n' "$1" "$2" "$tl_present" "$tl_cancelled" "$tl_newest" "$tl_secrets" "$tl_contested"
    for tl_file in submit claim start end exit/first; do
        tl_path=$tl_dir/attempts/$2/$tl_file
        if [ -f "$tl_path" ] && [ ! -h "$tl_path" ]; then
            printf '%s %s %s %s\n' "$1" "$2" "$tl_file" "$tl_path" >>./shown
        fi
    done
}

# show: the files' first lines, in frames.
show() {
    awk '{
        path = $0
        sub(/^[^ ]* [^ ]* [^ ]* /, "", path)
        print "@file " $1 " " $2 " " $3
        for (count = 0; count < 50 && (getline line < path) > 0; count++) print ">" substr(line, 1, 500)
        close(path)
    }' ./shown
}

tl_root=$1 tl_format=$2 tl_fields=$3 tl_away=
if [ -s ./queries ]; then
    find_slurm
    while read -r tl_cluster tl_ids; do
        query "$tl_cluster" "$tl_ids"
    done <./queries
fi
printf '' >./shown
while read -r tl_job tl_attempt; do
    look "$tl_job" "$tl_attempt"
done <./jobs
show
echo @end
