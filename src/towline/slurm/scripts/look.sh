#!/bin/sh
# look.sh ROOT PARTITIONS SINFO_FORMAT: what a plan can only know here; changes nothing. PARTITIONS may be `-`.
# ./required is read by required.sh, ./batch is the job's batch script.
# shellcheck source=src/towline/slurm/scripts/common.sh
. ./common.sh
# shellcheck source=src/towline/slurm/scripts/frames.sh
. ./frames.sh
# shellcheck source=src/towline/slurm/scripts/places.sh
. ./places.sh
# shellcheck source=src/towline/slurm/scripts/required.sh
. ./required.sh

tl_partitions=$2
[ "$tl_partitions" != - ] || tl_partitions=
find_slurm
printf '@fact required\n'
list_required | sed 's/^/>/'
printf '@fact place\n>room %s %s\n>now %s\n' "$(room "$1")" "$(nearest "$1")" "$(date +%s)"
ask test - - sbatch --test-only ./batch
ask free - - sinfo --noheader --exact --all ${tl_partitions:+"--partition=$tl_partitions"} "--format=$3"
echo @end
