#!/bin/sh
# facts.sh SINFO_FORMAT ASSOCIATION_FIELDS QOS_FIELDS: what the cluster says of itself, and of this user's rights there.
# A site without accounting, or one that keeps it to itself, answers the first three only.
# shellcheck source=src/towline/slurm/scripts/common.sh
. ./common.sh
# shellcheck source=src/towline/slurm/scripts/frames.sh
. ./frames.sh

patiently() {
    if command -v timeout >/dev/null 2>&1; then timeout 15 "$@"; else "$@"; fi
}

# later NAME COMMAND…: asks in the background, in a directory of its own: accounting takes a third of a second for each,
# and may hang when its database does.
later() {
    mkdir "./later.$1"
    (cd "./later.$1" && tl_name=$1 && shift && ask "$tl_name" - - patiently "$@") >"./answer.$1" &
}

# runtimes: what starts containers here. Pyxis is a plugin of srun's.
runtimes() {
    command -v srun >/dev/null 2>&1 || return 1
    ! srun --help 2>&1 </dev/null | grep -q -e '--container-image' || echo pyxis
    for tl_runtime in apptainer singularity; do
        ! command -v "$tl_runtime" >/dev/null 2>&1 || echo "$tl_runtime"
    done
}

find_slurm
tl_user=$(id -un 2>/dev/null || id -u)
ask config - - scontrol show config
tl_cluster=$(sed -n 's/^ClusterName *= *\([A-Za-z0-9_.-]*\).*/\1/p' ./ask.out)
if command -v sacctmgr >/dev/null 2>&1; then
    later associations sacctmgr --noheader --parsable2 show associations "user=$tl_user" \
        ${tl_cluster:+"cluster=$tl_cluster"} "format=$2"
    later user sacctmgr --noheader --parsable2 show user "$tl_user" format=DefaultAccount
    later qoses sacctmgr --noheader --parsable2 show qos "format=$3"
fi
ask partitions - - scontrol --oneliner show partition
ask nodes - - sinfo --noheader --exact --all "--format=$1"
ask groups - - id -Gn
ask licenses - - scontrol --oneliner show licenses
ask runtimes - - runtimes
wait
for tl_answer in ./answer.*; do
    [ ! -f "$tl_answer" ] || cat "$tl_answer"
done
echo @end
