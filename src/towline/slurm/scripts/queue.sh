#!/bin/sh
# queue.sh ID CLUSTER DIR SINFO_FORMAT: what a waiting job has in front of it (`-` for the cluster that answers by itself).
# DIR is the job's directory. Exit code 62: Slurm has given the id to another job.
# Long lists are summed up here: sites have tens of thousands of jobs in their queues.
# shellcheck source=src/towline/slurm/scripts/common.sh
. ./common.sh
# shellcheck source=src/towline/slurm/scripts/frames.sh
. ./frames.sh
# shellcheck source=src/towline/slurm/scripts/strangers.sh
. ./strangers.sh

# field NAME: a value of `scontrol show job`, as the last query printed it.
field() {
    sed -n "s/^.* $1=\([^ ]*\).*/\1/p" ./ask.out | head -n 1
}

# shortened: answers the last query with ./ask.short.
shortened() {
    mv ./ask.short ./ask.out
    answer
}

find_slurm
! is_stranger "$1" "$3" "$2" || exit 62
printf '@fact place\n>now %s\n' "$(date +%s)"
tl_where=
[ "$2" = - ] || tl_where=--clusters=$2
ask job - - scontrol ${tl_where:+"$tl_where"} --oneliner show job "$1"
tl_partition=$(field Partition)
tl_priority=$(field Priority)
if [ -n "$tl_partition" ]; then
    # Jobs that wait for something of their own are not in front of anybody.
    inquire ahead - - squeue ${tl_where:+"$tl_where"} --noheader --all --states=PENDING "--partition=$tl_partition" \
        '--format=%Q|%D|%U|%r'
    awk -F '|' -v own="$(id -u)" -v priority="$tl_priority" '
        $4 ~ /^(Dependency|JobHeld|BeginTime|BadConstraints|Partition)/ || $4 ~ /held/ { next }
        $1 ~ /^[0-9]+$/ && $1 + 0 > priority + 0 { count++; nodes += $2; if ($3 == own) mine++ }
        END { print count + 0 "|" nodes + 0 "|" mine + 0 }' ./ask.out >./ask.short
    shortened
    inquire ends - - squeue ${tl_where:+"$tl_where"} --noheader --all --states=RUNNING "--partition=$tl_partition" \
        '--format=%e|%D'
    awk -F '|' '
        $1 ~ /^[0-9]+$/ { if (first == "" || $1 < first) first = $1; count++; nodes += $2 }
        END { print count + 0 "|" nodes + 0 "|" first }' ./ask.out >./ask.short
    shortened
fi
inquire own - - squeue ${tl_where:+"$tl_where"} --noheader --all "--user=$(id -u)" --states=RUNNING '--format=%D|%C|%b'
awk -F '|' '
    $1 ~ /^[0-9]+$/ {
        count++; nodes += $1; cpus += $2
        if (match($3, /gpu[^,]*/)) {
            gpu = substr($3, RSTART, RLENGTH); sub(/\(.*/, "", gpu)
            parts = split(gpu, words, /[:=]/)
            gpus += $1 * (words[parts] ~ /^[0-9]+$/ ? words[parts] : 1)
        }
    }
    END { print count + 0 "|" nodes + 0 "|" cpus + 0 "|" gpus + 0 }' ./ask.out >./ask.short
shortened
ask free - - sinfo ${tl_where:+"$tl_where"} --noheader --exact --all "--format=$4"
ask reservations - - scontrol ${tl_where:+"$tl_where"} --oneliner show reservation
echo @end
