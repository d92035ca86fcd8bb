#!/bin/sh
# cancel.sh DIR TOKEN TASK ID…: marks the job as cancelled, then ends what Slurm has of it: the given ids (`id` or
# `id;cluster`), those recorded in its directory, and any job with its token, whose answer may have been lost. With TASK
# (`-` for none) all of that is about this one task of an array. Ids that Slurm has given to other jobs since are left alone.
# shellcheck source=src/towline/slurm/scripts/common.sh
. ./common.sh
# shellcheck source=src/towline/slurm/scripts/strangers.sh
. ./strangers.sh
# shellcheck source=src/towline/slurm/scripts/frames.sh
. ./frames.sh

# mark: first, so that no attempt begins after this.
mark() {
    if [ ! -d "$tl_dir" ]; then
        echo '@mark gone'
    elif [ -e "$tl_dir/$tl_mark" ] || printf '' >"$tl_dir/$tl_mark"; then
        [ -n "$tl_of" ] || rm -f "$tl_dir/secrets" # no attempt begins any more, and one that runs has read them
        echo '@mark done'
    else
        echo '@mark failed'
    fi
}

# known ID…: the ids as lines `cluster id`, each once.
known() {
    {
        [ $# -eq 0 ] || printf '%s\n' "$@"
        for tl_file in "$tl_dir"/attempts/*/submit "$tl_dir"/attempts/*/claim; do
            [ -f "$tl_file" ] && head -n 1 "$tl_file"
        done
        [ -f ./named ] && cat ./named
    } | sed -n -e 's/^\([0-9][0-9]*\)$/- \1/p' -e 's/^\([0-9][0-9]*\);\([A-Za-z0-9_.-]\{1,\}\)$/\2 \1/p' |
        sed "s/\$/$tl_of/" | sort -u
}

tl_dir=$1 tl_token=$2 tl_mark=cancelled tl_of=
if [ "$3" != - ]; then tl_mark=cancelled-$3 tl_of=_$3; fi
shift 3
mark
find_slurm
if [ -n "$tl_token" ]; then
    ask squeue - "$tl_token" squeue --noheader --all --user="$(id -u)" --name="$tl_token" --format=%F
    sed -n '/^[0-9][0-9]*$/p' ./ask.out >./named
fi
known "$@" >./ids
cut -d ' ' -f 1 ./ids | sort -u >./clusters
while read -r tl_cluster; do
    tl_ids=$(awk -v cluster="$tl_cluster" '$1 == cluster { print $2 }' ./ids)
    tl_where=
    [ "$tl_cluster" = - ] || tl_where=--clusters=$tl_cluster
    # shellcheck disable=SC2086 # ids are digits, one word each
    tl_ids=$(own "$tl_dir" "$tl_cluster" $tl_ids)
    [ -n "$tl_ids" ] || continue
    # shellcheck disable=SC2086 # ids are digits, one word each
    ask scancel "$tl_cluster" "$(printf '%s\n' $tl_ids | tr '\n' ',' | sed 's/,$//')" scancel ${tl_where:+"$tl_where"} $tl_ids
done <./clusters
echo @end
