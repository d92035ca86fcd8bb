#!/bin/sh
# image-of.sh JOB_DIR: how the imports are doing that a job waits for, or was cancelled for.
# shellcheck source=src/towline/slurm/scripts/common.sh
. ./common.sh
# shellcheck source=src/towline/slurm/scripts/lookup.sh
. ./lookup.sh
# shellcheck source=src/towline/slurm/scripts/imports.sh
. ./imports.sh

find_slurm
# Lines `REFERENCE PATH`. The directory belongs to the user; what the job made of it is not run, only read.
if [ -f "$1/script/images" ] && [ ! -h "$1/script/images" ]; then
    while read -r tl_reference tl_path; do
        tl_name=${tl_path##*/}
        tell_made "${tl_path%/*}" "${tl_name%.sqsh}"
        printf '@fact of-%s\n>reference %s\n' "${tl_name%.sqsh}" "$tl_reference"
    done <"$1/script/images"
fi
echo @end
