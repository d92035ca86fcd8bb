#!/bin/sh
# image-find.sh CACHE STEM ASK PARTITIONS REGISTRY REPOSITORY REFERENCE USER: which images of that stem the cache has, what
# the registry says (ASK is `yes`, or `absent` when the cache has none), and for which architecture the nodes are.
# shellcheck source=src/towline/slurm/scripts/common.sh
. ./common.sh
# shellcheck source=src/towline/slurm/scripts/lookup.sh
. ./lookup.sh
# shellcheck source=src/towline/slurm/scripts/enroot.sh
. ./enroot.sh
# shellcheck source=src/towline/slurm/scripts/space.sh
. ./space.sh
# shellcheck source=src/towline/slurm/scripts/registry.sh
. ./registry.sh
# shellcheck source=src/towline/slurm/scripts/imports.sh
. ./imports.sh

# architectures PARTITIONS: of their nodes that can be meant; nodes that never came up have none. ./asked narrows them down, as
# lines `in NODES`, `out NODES`, `feature NAME` and `gpu TYPE`.
architectures() {
    tl_in=$(asked_hosts in) tl_out=$(asked_hosts out)
    scontrol --oneliner show node 2>/dev/null </dev/null | wanted=$1 inside=$tl_in outside=$tl_out \
        features=$(asked feature) gpus=$(asked gpu) awk '
        BEGIN {
            count = split(ENVIRON["wanted"], names, ",")
            split(ENVIRON["features"], features, " ")
            split(ENVIRON["gpus"], gpus, " ")
        }
        {
            arch = parts = node = gres = active = ""
            for (i = 1; i <= NF; i++) {
                if (sub(/^Arch=/, "", $i)) arch = $i
                else if (sub(/^NodeName=/, "", $i)) node = " " $i " "
                else if (sub(/^Gres=/, "", $i)) gres = "," $i ":"
                else if (sub(/^ActiveFeatures=/, "", $i)) active = "," $i ","
                else if (sub(/^Partitions=/, "", $i)) parts = "," $i ","
            }
            if (arch == "") next
            if (ENVIRON["inside"] != "" && !index(ENVIRON["inside"], node)) next
            if (index(ENVIRON["outside"], node)) next
            for (i in features) if (!index(active, "," features[i] ",")) next
            for (i in gpus) if (!index(gres, ",gpu:" gpus[i] ":")) next
            for (i = 1; i <= count; i++) if (index(parts, "," names[i] ",")) { print arch; next }
        }' | sort -u
}

# asked KIND: the words of ./asked of that kind, in one line.
asked() { sed -n "s/^$1 //p" ./asked 2>/dev/null | tr '\n' ' '; }

# asked_hosts KIND: the nodes, each between blanks; none when the list cannot be read.
asked_hosts() {
    tl_hosts=$(asked "$1")
    [ -z "$tl_hosts" ] || printf ' %s ' "$(scontrol show hostnames "${tl_hosts% }" 2>/dev/null </dev/null | tr '\n' ' ')"
}

tl_cache=$1 tl_stem=$2 tl_ask=$3 tl_partitions=$4
shift 4
find_slurm
printf '@fact images\n>machine %s\n' "$(uname -m)"
tl_arches=$(architectures "$tl_partitions")
for tl_arch in $tl_arches; do printf '>arch %s\n' "$tl_arch"; done
find_enroot_conf
printf '>squash %s\n' "$(enroot_setting ENROOT_SQUASH_OPTIONS '')"
for tl_image in "$tl_cache/$tl_stem"+*.sqsh; do
    tl_name=${tl_image##*/}
    if ! is_name "$tl_name" || [ -h "$tl_image" ] || ! is_whole "$tl_image"; then continue; fi
    tl_ask=${tl_ask#absent}
    printf '>file %s %s\n' "${tl_name%.sqsh}" "$(stat -c '%u %s %Y %A %U' "$tl_image")"
    # Another user's file counts by what that user has recorded of it.
    [ "$(stat -c %u "${tl_image%.sqsh}.note" 2>/dev/null)" != "$(stat -c %u "$tl_image")" ] || sed "s/^/>note ${tl_name%.sqsh} /" "${tl_image%.sqsh}.note"
done
printf '>uid %s\n' "$(id -u)"
: "${tl_arches:=$(uname -m)}"
case $tl_ask in yes | absent) check_manifest "$@" ;; esac
printf '@query 0 space - -\n'
space "$tl_cache" | sed 's/^/>/'
echo @end
