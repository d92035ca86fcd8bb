#!/bin/sh
# images.sh ROOT CACHE WHAT [NAME…]: the images of the cache, all or these, with their uses; WHAT is `sum` to read them
# whole, `once` to read whole what has changed since this user last read it, else `list`.
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
    is_name "$1" && [ -f "$tl_file" ] && [ ! -h "$tl_file" ] || return 0
    printf '>file %s %s\n' "$1" "$(stat -c '%u %s %Y' "$tl_file")"
    is_whole "$tl_file" || printf '>broken %s\n' "$1"
    [ ! -f "$tl_cache/$1.note" ] || sed "s/^/>note $1 /" "$tl_cache/$1.note"
    [ "$tl_what" = list ] || printf '>sum %s %s\n' "$1" "$(sum_of "$tl_file" "$tl_root/images/.sums/$1")"
}

# sum_of FILE MEMORY: its checksum, from memory when `once` is enough and the file is the same down to its last change.
sum_of() {
    tl_mark=$(stat -c '%i %s %Y %Z' "$1")
    if [ "$tl_what" = once ] && read -r tl_kept <"$2" && [ "${tl_kept% *}" = "$tl_mark" ]; then
        printf '%s' "${tl_kept##* }"
        return 0
    fi 2>/dev/null
    tl_sum=$(sha256sum <"$1" | cut -d ' ' -f 1)
    [ "$tl_what" != once ] || { mkdir -p "${2%/*}" && printf '%s %s\n' "$tl_mark" "$tl_sum" >"$2"; } 2>/dev/null
    printf '%s' "$tl_sum"
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
