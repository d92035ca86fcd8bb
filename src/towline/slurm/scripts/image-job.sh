#!/bin/sh
# The job that makes one image: TOWLINE_JOB_DIR is <cache>/imports/<name>, TOWLINE_ATTEMPT the attempt. What it is to make
# stands in script/image: image_uri, image_arch (as `uname -m` says it), image_name and image_notes.
# Records below attempts/<n>: claim, stage, progress (bytes made so far, seconds since the start, bytes a second), log
# (Enroot's words), end. Where a group shares the cache, script/target names it, and a lock there keeps two users from
# making the same image at once. On a login host SLURM_JOB_ID is `here.<host>.<pid>`.
set -u
umask 077
# shellcheck source=src/towline/slurm/scripts/imports.sh
. ./imports.sh
# shellcheck source=src/towline/slurm/scripts/preparing.sh
. ./preparing.sh
# shellcheck source=src/towline/slurm/scripts/space.sh
. ./space.sh

cache=$(target_of "${TOWLINE_JOB_DIR%/imports/*}" "${TOWLINE_JOB_DIR##*/}")
image_uri='' image_arch='' image_name='' image_notes=''
# shellcheck source=/dev/null
. "$TOWLINE_JOB_DIR/script/image"
# In the cache's own directory, so that renaming is all that is left to do; no image's name begins with a dot.
part=$cache/.$image_name.$SLURM_JOB_ID.part
lock=$cache/.$image_name.lock
scratch='' reporter='' locked=''
# Seconds without a sign of life after which a lock counts as left behind.
patience=60

# fail STAGE CODE: the last record, and what Enroot said for people who read the job's own log. Where the image has filled
# the disk there is room for the record only when it is gone.
fail() {
    [ ! -f "$here/log" ] || cat "$here/log" >&2 2>/dev/null # a signal may come while the log is where errors go
    made=$(stat -c %s "$part" 2>/dev/null)
    limits=$(space "$cache" | tr '\n' '~')
    rm -f "$part"
    put end "made=${made:-0}" "code=$2" "stage=$1" "cache=$(room "$cache") $cache" "scratch=$(room "${scratch:-/tmp}") ${scratch%/*}" \
        "host=$(uname -n)" "limits=$limits"
    exit "$failed"
}

clean() {
    [ -z "$reporter" ] || kill "$reporter" 2>/dev/null
    rm -f "$part"
    rm -f "$lock.$SLURM_JOB_ID"
    [ -z "$locked" ] || rm -f "$lock"
    [ -z "$scratch" ] || { chmod -R u+rwX "$scratch" 2>/dev/null; rm -rf "$scratch"; }
}

# shellcheck disable=SC2317  # called from a trap
stop() {
    trap '' TERM INT
    [ -z "$worker" ] || kill "$worker" 2>/dev/null
    fail stopped 143
}

# Earlier jobs that were killed have left parts behind; one that a node cut off the network still writes loses its own.
clear_leftovers() {
    for old in "$cache/.$image_name".*.part; do
        [ ! -e "$old" ] || rm -f "$old"
    done
    rm -f "$here/end" "$here/log" "$here/stage" "$here/progress"
}

shared() { [ -f "$TOWLINE_JOB_DIR/script/target" ]; }

# lock_image: waits while another user's job makes the same image. The lock is a file that is touched while its job lives.
# Should two ever break a dead one at the same time, the image is made twice, and each file is whole all the same.
lock_image() {
    own=$lock.$SLURM_JOB_ID
    if ! { printf '%s %s\n' "$(id -un)" "$SLURM_JOB_ID" >"$own" && chmod 644 "$own"; } 2>>"$here/log"; then fail keep 1; fi
    put stage wait
    until ln "$own" "$lock" 2>/dev/null; do
        ! is_kept || break
        if [ "$(($(stat -c %Y "$own") - $(stat -c %Y "$lock" 2>/dev/null || stat -c %Y "$own")))" -gt "$patience" ]; then
            mv -f "$lock" "$lock.old" 2>/dev/null && rm -f "$lock.old"
        fi
        put progress "0 0 0"
        sleep 2
        touch "$own"
    done
    [ "$(cat "$lock" 2>/dev/null)" != "$(cat "$own")" ] || locked=yes
    rm -f "$own"
    find "$cache" -maxdepth 1 -name ".$image_name.lock.*" -mmin +10 -exec rm -f {} + 2>/dev/null
}

is_kept() { is_whole "$cache/$image_name.sqsh" && [ -f "$cache/$image_name.note" ]; }

# open_to_group FILE: readable for those who can read the cache.
open_to_group() {
    chgrp "$(stat -c %g "$cache")" "$1" 2>/dev/null
    case $(stat -c %A "$cache") in
    d??????r*) chmod 644 "$1" ;;
    d???r*) chmod 640 "$1" ;;
    esac
}

report() {
    begin=$(date +%s) made=0 then=$(date +%s)
    while sleep 2; do
        now=$(date +%s) had=$made
        made=$(du -sk "$scratch" "$part" 2>/dev/null | awk '{ sum += $1 } END { print sum * 1024 }')
        rate=$(((made - had) / (now > then ? now - then : 1)))
        put progress "$made $((now - begin)) $((rate > 0 ? rate : 0))"
        [ -z "$locked" ] || touch "$lock"
        then=$now
    done
}

check() {
    is_whole "$part" || return 1
    ! command -v unsquashfs >/dev/null 2>&1 || unsquashfs -s "$part" >/dev/null 2>>"$here/log"
}

keep() {
    size=$(stat -c %s "$part") sum=$(sha256sum "$part" | cut -d ' ' -f 1)
    note=$cache/.$image_name.note.$SLURM_JOB_ID
    printf '%ssize=%s\nsha256=%s\nmade=%s\nslurm=%s\n' "$image_notes" "$size" "$sum" "$(date +%s)" "$SLURM_JOB_ID" >"$note" &&
        { ! shared || { open_to_group "$part" && open_to_group "$note"; }; } &&
        mv -f "$part" "$cache/$image_name.sqsh" && mv -f "$note" "$cache/$image_name.note"
}

claim
trap clean EXIT
trap stop TERM INT
# Another attempt, or another user's job, may have made it since this one was asked for.
! shared || lock_image
clear_leftovers
if is_kept; then
    put end "code=0" "stage=done" "host=$(uname -n)"
    exit 0
fi
scratch=$(mktemp -d "${SLURM_TMPDIR:-${TMPDIR:-/tmp}}/towline-import.XXXXXXXXXX") || fail scratch 1
mkdir "$scratch/cache" "$scratch/temp"
export ENROOT_TEMP_PATH="$scratch/temp" ENROOT_CACHE_PATH="$scratch/cache"
put stage import
command -v enroot >/dev/null 2>&1 || fail no-enroot 127
report &
reporter=$!
run enroot import --arch "$image_arch" --output "$part" -- "$image_uri" || fail import "$code"
put stage check
check || fail check 1
put stage keep
keep 2>>"$here/log" || fail keep 1
put end "code=0" "stage=done" "size=$size" "host=$(uname -n)"
