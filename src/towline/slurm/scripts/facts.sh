#!/bin/sh
# facts.sh SINFO_FORMAT: what the cluster says of itself.
# shellcheck source=src/towline/slurm/scripts/common.sh
. ./common.sh
# shellcheck source=src/towline/slurm/scripts/frames.sh
. ./frames.sh

find_slurm
ask config - - scontrol show config
ask partitions - - scontrol --oneliner show partition
ask nodes - - sinfo --noheader --exact --all "--format=$1"
echo @end
