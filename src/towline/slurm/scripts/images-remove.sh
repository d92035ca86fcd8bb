#!/bin/sh
# images-remove.sh ROOT CACHE NAME…: takes images away that no job uses. An image is hidden first, and comes back when a
# job was submitted meanwhile: a submission looks for its image once more after its directory is there.
# shellcheck source=src/towline/slurm/scripts/common.sh
. ./common.sh
# shellcheck source=src/towline/slurm/scripts/lookup.sh
. ./lookup.sh
# shellcheck source=src/towline/slurm/scripts/imports.sh
. ./imports.sh
# shellcheck source=src/towline/slurm/scripts/uses.sh
. ./uses.sh

# say_used NAME: which job uses it; fails when none does. When Slurm cannot tell, every image is used.
say_used() {
    if ! job_uses "$tl_root" "$tl_cache" >./uses; then
        printf '>unsure %s\n' "$1"
    elif in_use "$1" >./used; then
        printf '>used %s %s\n' "$1" "$(cut -d ' ' -f 2 ./used | tr '\n' ' ')"
    else
        return 1
    fi
}

remove() {
    tl_gone=$tl_cache/.$1.gone.$$
    if [ ! -f "$tl_cache/$1.sqsh" ]; then
        printf '>missing %s\n' "$1"
    elif [ "$(stat -c %u "$tl_cache/$1.sqsh")" != "$(id -u)" ]; then
        printf '>failed %s it belongs to %s\n' "$1" "$(stat -c %U "$tl_cache/$1.sqsh")"
    elif say_used "$1"; then
        :
    elif ! mv -T "$tl_cache/$1.sqsh" "$tl_gone" 2>./make.err; then
        printf '>failed %s %s\n' "$1" "$(head -n 1 ./make.err)"
    elif say_used "$1"; then
        mv -T "$tl_gone" "$tl_cache/$1.sqsh"
    else
        tl_size=$(stat -c %s "$tl_gone")
        rm -f "$tl_cache/.use.$1".* 2>/dev/null # those of others may stay
        rm -f "$tl_gone" "$tl_cache/$1.note" && printf '>removed %s %s\n' "$1" "$tl_size"
    fi
}

tl_root=$1 tl_cache=$2
shift 2
find_slurm
printf '@fact removed\n'
for tl_name in "$@"; do remove "$tl_name"; done
echo @end
