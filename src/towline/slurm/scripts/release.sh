#!/bin/sh
# release.sh ID…: lets jobs into the queue again that Slurm put back and held, because a node could not start them
# (scontrol(1), release). The node is drained by then.
# shellcheck source=src/towline/slurm/scripts/common.sh
. ./common.sh

find_slurm
tl_failed=0
for tl_id; do
    scontrol release "$tl_id" </dev/null >&2 || tl_failed=1
done
[ "$tl_failed" = 0 ]
