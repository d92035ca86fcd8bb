# Say what lies below a root: jobs, snapshots of code, data, what jobs prepared; and which jobs Slurm still has.
#
# Arguments: the root, the user's setup line, directories in which jobs prepare something (images, staged data).
# Output: lines "root PATH" (without symbolic links), "job ID AGE END CODE SNAPSHOT" (seconds since its last attempt ended, or
#   since it changed; that attempt's verdict and exit code, or "- -"; its snapshot or "-"), "code SNAPSHOT AGE" (since it was last asked for),
#   "data AGE NAME" and "staged AGE NAME" (since it was changed), "copy AGE PATH" (staged data elsewhere), "import AGE queued|idle PATH", "left AGE PATH" (what calls that
#   were killed left half-made), "lives JOB" and "need PATH" for jobs that may live, "mention JOB NAME" for each job's spec, command or,
#   while it may live, code that has the name of such data in it, "kib N PATH" and "inodes N PATH" for each, "alive NAME" for each
#   job of the user's in the queue, and at last "whole" when the queue told.
# Exit codes: 0; 44 the root is missing.

here=$PWD
# shellcheck source=src/towline/storage/scripts/in-use.sh
. ./in-use.sh
cd "$1" 2>/dev/null || exit 44
[ -z "$2" ] || eval "$2" >/dev/null 2>&1 </dev/null
shift 2
told=yes
look || told=
newline='
'

# The job can write these files itself.
read_end() {
    while IFS='=' read -r key value; do
        case $key=$value in
        verdict=*[!a-z]* | code=*[!0-9]*) ;;
        verdict=?*) verdict=$value ;;
        code=?*) code=$value ;;
        esac
    done <"$1"
}

tell_jobs() {
    for job in jobs/[a-z0-9]*/; do
        job=${job%/}
        [ -d "$job/attempts" ] || continue
        newest_attempt "$job"
        seen=$job verdict=- code=-
        [ ! -f "$attempt/end" ] || { seen=$attempt/end && read_end "$seen"; }
        read_snapshot "${job#jobs/}"
        printf 'job %s %s %s %s %s\n' "${job#jobs/}" "$(age "$seen")" "$verdict" "$code" "$snapshot"
        if may_live "${job#jobs/}"; then
            printf 'lives %s\n' "${job#jobs/}"
            needs_of "${job#jobs/}" | sed 's|^|need |'
            code_mentions "${job#jobs/}" "$here/names" | sed 's|^|mention |'
        fi
    done
    mentions "$here/names" | sed 's|^|mention |'
}

# tell_all KIND: what is in that directory.
tell_all() {
    for item in "$1"/*; do
        case $item in *"$newline"* | */imports | "$1/*") continue ;; esac
        printf '%s %s %s\n' "$1" "$(tree_age "$item")" "${item#"$1"/}"
    done
}

# tell_copies PLACE…: own copies of data that lie outside of the root.
tell_copies() {
    for place; do
        elsewhere "$place" || continue
        place=$(readlink -m -- "$place")
        for item in "$place"/*+*/; do
            item=${item%/}
            ! is_copy "$item" || printf 'copy %s %s\n' "$(tree_age "$item")" "$item"
        done
    done
}

tell_imports() {
    for place; do
        for import in "$place"/imports/*/; do
            import=${import%/}
            [ -d "$import/attempts" ] || continue
            newest_attempt "$import"
            state=idle
            ! queued "$(prepared_by "$import")" || state=queued
            printf 'import %s %s %s\n' "$(age "$attempt")" "$state" "$import"
        done
    done
}

# Only hidden names of this project's own: nothing else is taken away.
tell_left() {
    for place; do
        elsewhere "$place" || continue
        place=$(readlink -m -- "$place")
        for left in "$place"/.*+*.part "$place"/.*+*.removed.*; do
            if [ -d "$left" ] && [ -O "$left" ]; then printf 'left %s %s\n' "$(tree_age "$left")" "$left"; fi
        done
    done
    for left in jobs/.[a-z0-9]*.* code/.[a-z0-9]*.* code/.towline-* data/.*.removed.* staged/.*.removed.* staged/.*.part; do
        [ ! -d "$left" ] || printf 'left %s %s\n' "$(tree_age "$left")" "$left"
    done
}

printf 'root %s\n' "$(pwd -P)"
find data staged "$@" -mindepth 1 -maxdepth 1 ! -name "*$newline*" ! -name '.*' ! -name imports ! -name '*.sqsh' ! -name '*.note' \
    -printf '%f\n' 2>/dev/null | sort -u >"$here/names"
tell_jobs
needs_elsewhere | sed 's|^|need |'
for code in code/[0-9a-f]*/; do
    code=${code%/}
    [ -d "$code" ] && printf 'code %s %s\n' "${code#code/}" "$(age "$code")"
done
tell_all data
tell_all staged
tell_imports "$@"
tell_copies "$@"
tell_left "$@"
sizes() { sed "s/^\([0-9]*\)[[:space:]]*/$1 \1 /"; }
measure() {
    {
        find jobs code data staged -mindepth 1 -maxdepth 1 -print0
        for place in "$@"; do
            find "$place/imports" -mindepth 1 -maxdepth 1 -type d -print0
            ! elsewhere "$place" || find "$(readlink -m -- "$place")" -mindepth 1 -maxdepth 1 -type d -name '*+*' -print0
        done
    } 2>/dev/null | sort -z
}
measure "$@" | xargs -0 -r du -sk 2>/dev/null | sizes kib
measure "$@" | xargs -0 -r du -s --inodes 2>/dev/null | sizes inodes
if [ -n "$told" ]; then
    printf '%s\n' "$alive" | sed -n 's/^./alive &/p'
    echo whole
fi
