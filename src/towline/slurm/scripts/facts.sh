#!/bin/sh
# facts.sh SINFO_FORMAT ASSOCIATION_FIELDS QOS_FIELDS: what the cluster says of itself, and of this user's rights there.
# A site without accounting, or one that keeps it to itself, answers the first three only.
# shellcheck source=src/towline/slurm/scripts/common.sh
. ./common.sh
# shellcheck source=src/towline/slurm/scripts/frames.sh
. ./frames.sh

find_slurm
tl_user=$(id -un 2>/dev/null || id -u)
ask config - - scontrol show config
tl_cluster=$(sed -n 's/^ClusterName *= *\([A-Za-z0-9_.-]*\).*/\1/p' ./ask.out)
ask partitions - - scontrol --oneliner show partition
ask nodes - - sinfo --noheader --exact --all "--format=$1"
ask groups - - id -Gn
ask licenses - - scontrol --oneliner show licenses
if command -v sacctmgr >/dev/null 2>&1; then
    ask associations - - sacctmgr --noheader --parsable2 show associations "user=$tl_user" \
        ${tl_cluster:+"cluster=$tl_cluster"} "format=$2"
    ask user - - sacctmgr --noheader --parsable2 show user "$tl_user" format=DefaultAccount
    ask qoses - - sacctmgr --noheader --parsable2 show qos "format=$3"
fi
echo @end
