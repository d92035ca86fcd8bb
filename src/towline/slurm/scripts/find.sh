#!/bin/sh
# find.sh DIR ATTEMPT TOKEN MESSAGE_TIMEOUT INTENT OWNER WITHDRAW: what became of a submission whose answer was lost.
# shellcheck source=src/towline/slurm/scripts/common.sh
. ./common.sh
# shellcheck source=src/towline/slurm/scripts/lookup.sh
. ./lookup.sh
# shellcheck source=src/towline/slurm/scripts/space.sh
. ./space.sh
# shellcheck source=src/towline/slurm/scripts/attempt.sh
. ./attempt.sh

find_slurm
find_attempt "$@"
