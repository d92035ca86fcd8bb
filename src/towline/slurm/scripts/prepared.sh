#!/bin/sh
# prepared.sh PLACE NAME…: whether each thing is there, and how the newest job that makes it is doing.
# shellcheck source=src/towline/slurm/scripts/common.sh
. ./common.sh
# shellcheck source=src/towline/slurm/scripts/lookup.sh
. ./lookup.sh
# shellcheck source=src/towline/slurm/scripts/imports.sh
. ./imports.sh

tl_within=$1
shift
find_slurm
for tl_name in "$@"; do
    tell_made "$tl_within" "$tl_name"
done
echo @end
