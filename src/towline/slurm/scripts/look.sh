#!/bin/sh
# look.sh ROOT SINFO_FORMAT: what a plan can only know here; changes nothing.
# ./required is read by required.sh, ./batch is the job's batch script.
# shellcheck source=src/towline/slurm/scripts/common.sh
. ./common.sh
# shellcheck source=src/towline/slurm/scripts/frames.sh
. ./frames.sh
# shellcheck source=src/towline/slurm/scripts/places.sh
. ./places.sh
# shellcheck source=src/towline/slurm/scripts/space.sh
. ./space.sh
# shellcheck source=src/towline/slurm/scripts/required.sh
. ./required.sh

find_slurm
printf '@fact required\n'
list_required | sed 's/^/>/'
printf '@fact place\n>room %s %s\n>now %s\n' "$(room "$1")" "$(nearest "$1")" "$(date +%s)"
printf '@query 0 space - -\n'
space "$1" | sed 's/^/>/'
ask test - - sbatch --test-only ./batch
ask free - - sinfo --noheader --exact --all "--format=$2"
echo @end
