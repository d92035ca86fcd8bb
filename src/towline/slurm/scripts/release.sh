#!/bin/sh
# release.sh ID DIR: lets a job into the queue again that Slurm put back and held, because a node could not start it
# (scontrol(1), release). The node is drained by then. DIR is the job's directory.
# shellcheck source=src/towline/slurm/scripts/common.sh
. ./common.sh
# shellcheck source=src/towline/slurm/scripts/strangers.sh
. ./strangers.sh

find_slurm
! is_stranger "$1" "$2" || exit 62
scontrol release "$1" </dev/null >&2
