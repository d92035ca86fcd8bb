#!/bin/sh
# submit.sh DIR ATTEMPT TOKEN MESSAGE_TIMEOUT INTENT OWNER SBATCH…: the job directory is staged; submit the attempt.
# shellcheck source=src/towline/slurm/scripts/common.sh
. ./common.sh
# shellcheck source=src/towline/slurm/scripts/lookup.sh
. ./lookup.sh
# shellcheck source=src/towline/slurm/scripts/space.sh
. ./space.sh
# shellcheck source=src/towline/slurm/scripts/attempt.sh
. ./attempt.sh

find_slurm
submit_attempt "$@"
