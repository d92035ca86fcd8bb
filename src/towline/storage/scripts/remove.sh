# Remove what nobody uses: jobs, logs of jobs, snapshots of code, data, directories of imports, leftovers; never what is in use.
#
# What is to go is hidden first, then it is asked again who uses it: what is used after all gets its name back. Whoever needs
# something looks for it once more after all can see that (stage.sh, snapshot.sh), so that one of both sees the other.
#
# Arguments: the root, the user's setup line, then what to remove: jobs/ID, logs/ID, results/ID, code/SNAPSHOT, data/NAME,
#   staged/NAME, an absolute PLACE/imports/NAME or PLACE/NAME of a copy of data, or a hidden name of a leftover.
# Output: a line "removed WHAT" or "used WHAT" for each.
# Exit codes: 0; 43 the queue could not be asked, so nothing was removed; 44 the root is missing.

here=$PWD
# shellcheck source=src/towline/storage/scripts/in-use.sh
. ./in-use.sh
# shellcheck source=src/towline/slurm/scripts/layout.sh
. ./layout.sh
cd "$1" 2>/dev/null || exit 44
[ -z "$2" ] || eval "$2" >/dev/null 2>&1 </dev/null
shift 2
root=$(pwd -P)

# in_use WHAT PLACE: somebody needs it, which is at PLACE now.
in_use() {
    name=${1#*/}
    case $1 in
    jobs/.* | code/.* | data/.* | staged/.*) [ "$(tree_age "$2")" -lt "$fresh" ] ;;
    jobs/* | logs/* | results/*) queued "$name" ;;
    code/*)
        grep -qs "\"id\": \"$name\"" jobs/*/script/code.json || [ "$(age "$2")" -lt "$fresh" ]
        ;;
    data/* | staged/*) [ "$(tree_age "$2")" -lt "$fresh" ] || needed "$root/$1" "$name" ;;
    # Within two days accounting may still be asked for an attempt of that number (lookup.sh).
    */imports/*)
        newest_attempt "$2"
        queued "$(prepared_by "$2")" || [ "$(age "$attempt")" -lt "$((2 * fresh))" ]
        ;;
    /*/.*) [ ! -O "$2" ] || [ "$(tree_age "$2")" -lt "$fresh" ] ;;
    /*) ! is_copy "$2" || [ "$(tree_age "$2")" -lt "$fresh" ] || needed "$(readlink -m -- "$1")" "${1##*/}" ;;
    esac
}

# needed PATH NAME: a job that may live names it, or needs it or something in it.
needed() {
    while IFS= read -r path; do
        case $path/ in "$1"/*) return 0 ;; esac
    done <"$here/needs"
    grep -qxF -e "$2" "$here/named"
}

# look_again: who is alive now, and what they need.
look_again() {
    look || return
    : >"$here/needs"
    : >"$here/named"
    [ -s "$here/names" ] || return 0
    needs_elsewhere >>"$here/needs"
    mentions "$here/names" >"$here/mentions"
    for job in jobs/[a-z0-9]*/; do
        job=${job#jobs/} job=${job%/}
        may_live "$job" || continue
        needs_of "$job" >>"$here/needs"
        { code_mentions "$job" "$here/names" && grep -e "^$job " "$here/mentions"; } | sed 's/^[^ ]* //' >>"$here/named"
    done
}

# hide WHAT: it disappears at once; prints where it is.
hide() {
    hidden=${1%/*}/.${1##*/}.removed.$$
    case ${1##*/} in .*) hidden=$1 ;; esac
    if [ ! -e "$1" ] && [ ! -h "$1" ]; then
        echo gone
    elif [ "$hidden" = "$1" ] || mv -T "$1" "$hidden"; then
        printf '%s\n' "$hidden"
    else
        echo used
    fi
}

# show PLACE WHAT: it has its name again.
show() {
    [ "$1" = "$2" ] || mv -T "$1" "$2"
}

# doom PATH…: what goes in the end, all together: a process for each would take longer than the work.
doom() { printf '%s\0' "$@" >>"$here/doomed"; }

erase() {
    # shellcheck disable=SC2016  # it is the other shell that expands this
    xargs -0 -r sh -c 'find "$@" -type d ! -perm -u+w -exec chmod u+w {} + ; rm -rf -- "$@"' sh <"$here/doomed"
}

# empty WHAT: a part of a job that stays.
empty() {
    job=jobs/${1#*/}
    case $1 in
    logs/*) find "$job/attempts" -type f \( -name '*.out' -o -name '*.err' \) -exec rm -f {} + ;;
    results/*)
        if [ -d "$job/results" ] && mv -T "$job/results" "$job/.results.removed.$$"; then
            mkdir "$job/results"
            doom "$job/.results.removed.$$"
        fi
        ;;
    esac
}

# finish WHAT PLACE: erases what is hidden there and still not used; else it gets its name back.
finish() {
    word=removed
    case $2 in
    gone) ;;
    used) word=used ;;
    -) if [ -n "$told" ] && ! in_use "$1" ""; then empty "$1"; else word=used; fi ;;
    *)
        if [ -z "$told" ] || in_use "$1" "$2"; then
            word=used
            show "$2" "$1"
        else
            case $1 in jobs/[!.]*)
                [ ! -f "$2/script/layout" ] || forget_layout . "$2"
                [ ! -h "results/${1#*/}" ] || doom "results/${1#*/}"
                ;;
            esac
            doom "$2"
        fi
        ;;
    esac
    printf '%s %s\n' "$word" "$1"
}

for what; do
    case $what in
    */imports/* | */.*) ;;
    data/* | staged/*) printf '%s\n' "${what#*/}" ;;
    /*) printf '%s\n' "${what##*/}" ;;
    esac
done >"$here/names"
: >"$here/doomed"
look_again || exit 43
trap '' HUP INT TERM PIPE # what is hidden gets its name back, or goes
for what; do
    case $what in
    logs/* | results/*) echo - ;;
    *) if in_use "$what" "$what"; then echo used; else hide "$what"; fi ;;
    esac
done >"$here/places"
told=yes
look_again || told=
for what; do
    read -r place
    finish "$what" "$place"
done <"$here/places"
erase
[ -n "$told" ] || exit 43
