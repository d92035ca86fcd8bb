#!/bin/sh
# What Slurm runs of one job.

# running ID: a line `JOB GROUP COUNT NODES` for each component of a heterogeneous job, for any other job one: JOB is the
# number by which srun knows it, also of an array's task, GROUP the component's (srun(1), --het-group), `-` for none.
running() {
    squeue --noheader "--jobs=$1" --states=RUNNING '--format=%i %A %D %N' 2>/dev/null </dev/null | awk '
        $2 !~ /^[0-9]+$/ { next }
        $1 ~ /^[0-9]+[+][0-9]+$/ { split($1, parts, "+"); print parts[1], parts[2], $3, $4; next }
        { print $2, "-", $3, $4 }' | sort -k 2n
}
