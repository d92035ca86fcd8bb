#!/bin/sh
# The cache of images, and the jobs that fill it. `<cache>/<name>.sqsh` is an image with its notes in `<name>.note`;
# `<cache>/imports/<name>/attempts/<n>` are the Slurm jobs that have tried to make it, one after another. What else is
# made by jobs of its own has such a directory, too. Where a group shares the cache, these directories are each user's own:
# `imports/<name>/script/target` then names the cache.

# newest_import DIR: sets tl_n, 0 for none.
newest_import() {
    tl_n=0
    while [ -d "$1/attempts/$((tl_n + 1))" ]; do tl_n=$((tl_n + 1)); done
}

# import_id DIR N: prints the Slurm id of an attempt, `-` while it has none.
import_id() {
    tl_word=-
    for tl_file in claim submit; do
        if [ -f "$1/attempts/$2/$tl_file" ] && [ ! -h "$1/attempts/$2/$tl_file" ]; then
            tl_word=$(sed -n '1s/^\([0-9][0-9]*\).*/\1/p' "$1/attempts/$2/$tl_file")
            break
        fi
    done
    printf '%s' "${tl_word:--}"
}

# target_of PLACE NAME: the directory that a thing lies in once it is made.
target_of() {
    if [ -f "$1/imports/$2/script/target" ] && [ ! -h "$1/imports/$2/script/target" ]; then
        cat "$1/imports/$2/script/target"
    else
        printf '%s' "$1"
    fi
}

# age FILE: seconds since it was written, by the file system's own clock; a file beside it is written for that.
age() {
    tl_probe=$1.probe.$$
    printf '' >"$tl_probe" 2>/dev/null || return 1
    printf '%s' "$(($(stat -c %Y "$tl_probe") - $(stat -c %Y "$1")))"
    rm -f "$tl_probe"
}

# import_state DIR N ID: `ended` when the job has said how it went, else what the queue says: `alive`, `gone` or `unknown`;
# `open` when it is not known to be a job yet. A job writes its end before it leaves the queue, so who finds it gone looks
# for its end once more.
import_state() {
    tl_state=$(import_stage "$@")
    if [ "$tl_state" = gone ] && [ -f "$1/attempts/$2/end" ]; then tl_state=ended; fi
    printf '%s' "$tl_state"
}

import_stage() {
    if [ -f "$1/attempts/$2/end" ]; then
        printf ended
    elif [ -f "$1/attempts/$2/here" ]; then # on a login host, where it tells every two seconds how far it is
        tl_sign=$1/attempts/$2/here
        [ ! -f "$1/attempts/$2/progress" ] || tl_sign=$1/attempts/$2/progress
        if [ "$(age "$tl_sign")" -gt 60 ] 2>/dev/null; then printf gone; else printf alive; fi
    elif [ "$3" = - ]; then
        printf open
    elif tl_rows=$(squeue --noheader --all --states=all "--jobs=$3" --format='%i|%T|%Z' 2>./look.err </dev/null); then
        tl_rows=$(printf '%s\n' "$tl_rows" | sed "\\;|/;{\\;/${1##*/}\$;!d;}") # ids come again, for others
        if [ -n "$(printf '%s\n' "$tl_rows" | living)" ]; then printf alive; else printf gone; fi
    elif grep -qi 'invalid job id' ./look.err; then
        printf gone
    else
        printf unknown
    fi
}

# tell_import NAME DIR N: a frame with how an attempt is doing, and one with its last words.
tell_import() {
    tl_job=$(import_id "$2" "$3")
    tl_is=$(import_state "$2" "$3" "$tl_job")
    case $tl_is in ended | gone) rm -f "$2/script/secrets-$3" ;; esac # a job that was killed leaves them
    printf '@fact making-%s\n>number %s\n>slurm %s\n>state %s\n' "$1" "$3" "$tl_job" "$tl_is"
    for tl_file in stage progress end; do
        [ ! -f "$2/attempts/$3/$tl_file" ] || sed "s/^/>$tl_file /" "$2/attempts/$3/$tl_file"
    done
    [ ! -f "$2/attempts/$3/log" ] || tail -n 30 "$2/attempts/$3/log" | tr '\r' '\n' | tail -n 30 | cut -c 1-500 | sed 's/^/>log /'
}

# tell_progress JOB WHAT DIR: a frame with how far the newest attempt is, for a job that waits for it; none once it has ended.
tell_progress() {
    newest_import "$3"
    [ "$tl_n" -gt 0 ] && [ ! -e "$3/attempts/$tl_n/end" ] || return 0
    printf '@await %s\n>what %s\n>slurm %s\n' "$1" "$2" "$(import_id "$3" "$tl_n")"
    for tl_file in stage progress; do
        [ ! -f "$3/attempts/$tl_n/$tl_file" ] || sed "s/^/>$tl_file /" "$3/attempts/$tl_n/$tl_file"
    done
    [ ! -f "$3/attempts/$tl_n/log" ] || sed -n 's/^\[INFO\] //p' "$3/attempts/$tl_n/log" | tail -n 1 | cut -c 1-200 | sed 's/^/>doing /'
}

# tell_made PLACE NAME: its newest import, and whether it is there. That is looked at last: its job writes its end after
# it, so an import that has ended well is never told without what it made.
tell_made() {
    newest_import "$1/imports/$2"
    [ "$tl_n" -eq 0 ] || tell_import "$2" "$1/imports/$2" "$tl_n"
    printf '@fact made-%s\n' "$2"
    tl_target=$(target_of "$1" "$2")
    if is_whole "$tl_target/$2.sqsh"; then
        stat -c '>size %s' "$tl_target/$2.sqsh"
    elif [ -f "$1/$2/note" ]; then
        sed -n 's/^size=/>size /p' "$1/$2/note"
    fi
}

# is_made PLACE NAME: an image that is a whole file, or a directory of data, which has a note once it is whole.
is_made() { is_whole "$1/$2.sqsh" || [ -f "$1/$2/note" ]; }

# needs JOB_DIR: lines `REFERENCE PLACE NAME` for each thing that is made for a job. The directory belongs to the user; what
# the job made of it is not run, only read. Lines of the files are `REFERENCE PATH`, and for images of a shared cache
# `REFERENCE PATH PLACE`.
needs() {
    for tl_list in images inputs; do
        if [ ! -f "$1/script/$tl_list" ] || [ -h "$1/script/$tl_list" ]; then continue; fi
        while read -r tl_reference tl_path tl_place; do
            [ "$tl_list" = images ] || tl_path=${tl_path%/data}
            tl_name=${tl_path##*/}
            printf '%s %s %s\n' "$tl_reference" "${tl_place:-${tl_path%/*}}" "${tl_name%.sqsh}"
        done <"$1/script/$tl_list"
    done
}

# is_name TEXT: it can be an image's name in the cache. Others may put files there, and a blank in a name would be an answer's.
is_name() { case $1 in '' | .* | *[!A-Za-z0-9_.+-]*) return 1 ;; esac }

# is_whole FILE: a squashfs file as long as its superblock says (squashfs_fs.h: bytes_used, 8 bytes from 40 on).
is_whole() {
    [ -f "$1" ] && [ "$(head -c 4 "$1" 2>/dev/null)" = hsqs ] || return 1
    tl_used=$(od -An -t u8 -j 40 -N 8 "$1" 2>/dev/null | tr -d ' ')
    tl_size=$(stat -L -c %s "$1" 2>/dev/null)
    [ "${tl_used:-0}" -ge 96 ] && [ "${tl_size:-0}" -ge "$tl_used" ]
}
