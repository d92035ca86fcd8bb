#!/bin/sh
# image-find.sh CACHE STEM ASK PARTITIONS REGISTRY REPOSITORY REFERENCE USER: which images of that stem the cache has, what
# the registry says (ASK is `yes`), and for which architecture the nodes are.
# shellcheck source=src/towline/slurm/scripts/common.sh
. ./common.sh
# shellcheck source=src/towline/slurm/scripts/lookup.sh
. ./lookup.sh
# shellcheck source=src/towline/slurm/scripts/enroot.sh
. ./enroot.sh
# shellcheck source=src/towline/slurm/scripts/registry.sh
. ./registry.sh
# shellcheck source=src/towline/slurm/scripts/imports.sh
. ./imports.sh

# architectures PARTITIONS: of their nodes; nodes that never came up have none.
architectures() {
    scontrol --oneliner show node 2>/dev/null </dev/null | wanted=$1 awk '
        BEGIN { count = split(ENVIRON["wanted"], names, ",") }
        {
            arch = parts = ""
            for (i = 1; i <= NF; i++) {
                if (sub(/^Arch=/, "", $i)) arch = $i
                else if (sub(/^Partitions=/, "", $i)) parts = "," $i ","
            }
            if (arch == "") next
            for (i = 1; i <= count; i++) if (index(parts, "," names[i] ",")) { print arch; next }
        }' | sort -u
}

tl_cache=$1 tl_stem=$2 tl_ask=$3 tl_partitions=$4
shift 4
find_slurm
printf '@fact images\n>machine %s\n' "$(uname -m)"
architectures "$tl_partitions" | sed 's/^/>arch /'
for tl_image in "$tl_cache/$tl_stem"+*.sqsh; do
    if [ -h "$tl_image" ] || ! is_whole "$tl_image"; then continue; fi
    tl_name=${tl_image##*/}
    printf '>file %s %s\n' "${tl_name%.sqsh}" "$(stat -c '%u %s %Y %A %U' "$tl_image")"
    # Another user's file counts by what that user has recorded of it.
    [ "$(stat -c %u "${tl_image%.sqsh}.note" 2>/dev/null)" != "$(stat -c %u "$tl_image")" ] || sed "s/^/>note ${tl_name%.sqsh} /" "${tl_image%.sqsh}.note"
done
printf '>uid %s\n' "$(id -u)"
[ "$tl_ask" != yes ] || check_manifest "$@"
echo @end
