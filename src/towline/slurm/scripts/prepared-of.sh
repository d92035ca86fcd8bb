#!/bin/sh
# prepared-of.sh JOB_DIR: how the things are doing that are made for a job which waits for them, or was cancelled for them.
# shellcheck source=src/towline/slurm/scripts/common.sh
. ./common.sh
# shellcheck source=src/towline/slurm/scripts/lookup.sh
. ./lookup.sh
# shellcheck source=src/towline/slurm/scripts/imports.sh
. ./imports.sh

find_slurm
needs "$1" >./needs
while read -r tl_reference tl_within tl_name; do
    tell_made "$tl_within" "$tl_name"
    printf '@fact of-%s\n>reference %s\n' "$tl_name" "$tl_reference"
done <./needs
echo @end
