#!/bin/sh
# images.sh ROOT CACHE WHAT [NAME…]: the images of the cache, all or these, with their uses; WHAT is `sum` to read them
# whole, else `list`.
# shellcheck source=src/towline/slurm/scripts/common.sh
. ./common.sh
# shellcheck source=src/towline/slurm/scripts/lookup.sh
. ./lookup.sh
# shellcheck source=src/towline/slurm/scripts/imports.sh
. ./imports.sh
# shellcheck source=src/towline/slurm/scripts/uses.sh
. ./uses.sh

# tell NAME
tell() {
    tl_file=$tl_cache/$1.sqsh
    [ -f "$tl_file" ] && [ ! -h "$tl_file" ] || return 0
    printf '>file %s %s\n' "$1" "$(stat -c '%u %s %Y' "$tl_file")"
    is_whole "$tl_file" || printf '>broken %s\n' "$1"
    [ ! -f "$tl_cache/$1.note" ] || sed "s/^/>note $1 /" "$tl_cache/$1.note"
    [ "$tl_what" != sum ] || printf '>sum %s %s\n' "$1" "$(sha256sum <"$tl_file" | cut -d ' ' -f 1)"
}

tl_root=$1 tl_cache=$2 tl_what=$3
shift 3
find_slurm
printf '@fact images\n>uid %s\n>now %s\n' "$(id -u)" "$(date +%s)"
if [ "$#" -gt 0 ]; then
    for tl_name in "$@"; do tell "$tl_name"; done
else
    for tl_path in "$tl_cache"/*.sqsh; do
        tl_name=${tl_path##*/}
        tell "${tl_name%.sqsh}"
    done
fi
if job_uses "$tl_root" "$tl_cache" >./uses; then sed 's/^/>use /' ./uses; else printf '>unsure\n'; fi
echo @end
