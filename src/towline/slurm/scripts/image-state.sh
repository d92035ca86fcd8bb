#!/bin/sh
# image-state.sh CACHE NAME…: whether each image is there, and how its newest import is doing.
# shellcheck source=src/towline/slurm/scripts/common.sh
. ./common.sh
# shellcheck source=src/towline/slurm/scripts/lookup.sh
. ./lookup.sh
# shellcheck source=src/towline/slurm/scripts/imports.sh
. ./imports.sh

tl_cache=$1
shift
find_slurm
for tl_name in "$@"; do
    tell_made "$tl_cache" "$tl_name"
done
echo @end
